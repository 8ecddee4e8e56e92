package workload_test

import (
	"encoding/json"
	"encoding/pem"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// apiServer answers what a Pool asks: /livez, discovery, list and watch of Nodes.
type apiServer struct {
	t    *testing.T
	addr string
	// ca is the certificate of the last server; httptest has one for all.
	ca []byte

	mu       sync.Mutex
	server   *httptest.Server
	version  int
	nodes    map[string]*corev1.Node
	watchers map[chan metav1.WatchEvent]struct{}
}

// newAPIServer reserves an address of its own; nothing listens there before up is called.
func newAPIServer(t *testing.T) *apiServer {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	probe := httptest.NewTLSServer(http.NotFoundHandler())
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: probe.Certificate().Raw})
	probe.Close()
	s := &apiServer{t: t, addr: addr, ca: ca, nodes: map[string]*corev1.Node{}, watchers: map[chan metav1.WatchEvent]struct{}{}}
	t.Cleanup(s.down)
	return s
}

func (s *apiServer) kubeconfig() []byte {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://" + s.addr, CertificateAuthorityData: s.ca, TLSServerName: "example.com"}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "t"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	data, err := clientcmd.Write(*config)
	if err != nil {
		s.t.Fatal(err)
	}
	return data
}

// up begins to answer.
func (s *apiServer) up() {
	s.t.Helper()
	listener, err := net.Listen("tcp", s.addr)
	if err != nil {
		s.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(s)
	server.Listener = listener
	server.EnableHTTP2 = true
	// Held until the server is known: a watch is refused before.
	s.mu.Lock()
	defer s.mu.Unlock()
	server.StartTLS()
	s.server = server
}

// down breaks all connections and stops answering.
func (s *apiServer) down() {
	s.mu.Lock()
	server := s.server
	s.server = nil
	for watcher := range s.watchers {
		close(watcher)
		delete(s.watchers, watcher)
	}
	s.mu.Unlock()
	if server != nil {
		server.CloseClientConnections()
		server.Close()
	}
}

// put adds or changes a Node.
func (s *apiServer) put(node *corev1.Node) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	kind := "ADDED"
	if _, ok := s.nodes[node.Name]; ok {
		kind = "MODIFIED"
	}
	stored := node.DeepCopy()
	stored.APIVersion, stored.Kind = "v1", "Node"
	stored.ResourceVersion = strconv.Itoa(s.version)
	s.nodes[node.Name] = stored
	for watcher := range s.watchers {
		watcher <- s.event(kind, stored)
	}
}

func (s *apiServer) event(kind string, obj any) metav1.WatchEvent {
	data, err := json.Marshal(obj)
	if err != nil {
		s.t.Error(err)
	}
	event := metav1.WatchEvent{Type: kind}
	event.Object.Raw = data
	return event
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer := func(obj any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(obj)
	}
	switch r.URL.Path {
	case "/livez":
		_, _ = w.Write([]byte("ok"))
	case "/api":
		answer(metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case "/apis":
		answer(metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}})
	case "/api/v1":
		answer(metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "nodes", SingularName: "node", Kind: "Node", Verbs: metav1.Verbs{"get", "list", "watch"}}},
		})
	case "/api/v1/nodes":
		s.serveNodes(w, r, answer)
	default:
		http.NotFound(w, r)
	}
}

func (s *apiServer) serveNodes(w http.ResponseWriter, r *http.Request, answer func(any)) {
	if r.URL.Query().Get("watch") == "" {
		s.mu.Lock()
		list := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}, ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.version)}}
		for _, node := range s.nodes {
			list.Items = append(list.Items, *node)
		}
		s.mu.Unlock()
		answer(list)
		return
	}
	events := make(chan metav1.WatchEvent, 100)
	s.mu.Lock()
	if s.server == nil {
		// A client that dials again while down closes the server: nobody would end this watch, and down waits for it.
		s.mu.Unlock()
		http.Error(w, "going down", http.StatusServiceUnavailable)
		return
	}
	if r.URL.Query().Get("sendInitialEvents") == "true" {
		for _, node := range s.nodes {
			events <- s.event("ADDED", node)
		}
		events <- s.event("BOOKMARK", &corev1.Node{
			TypeMeta:   metav1.TypeMeta{Kind: "Node", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: strconv.Itoa(s.version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
		})
	}
	s.watchers[events] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.watchers, events)
	}()
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	for {
		select {
		case event, open := <-events:
			if !open || encoder.Encode(event) != nil {
				return
			}
			w.(http.Flusher).Flush()
		case <-r.Context().Done():
			return
		}
	}
}
