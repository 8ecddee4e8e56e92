package kubelet

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cri-streaming/pkg/streaming/portforward"
)

// The kubelet's own limits for streams (pkg/kubelet/server).
const (
	streamIdle     = 4 * time.Hour
	streamCreation = 30 * time.Second
)

// server returns the kubelet's API and the listener for it.
func (k *Kubelet) server(p *pods) (http.Handler, net.Listener, error) {
	certificate, err := servingCertificate(k.Root, k.settings.NodeName, k.Machine.Address)
	if err != nil {
		return nil, nil, err
	}
	callers := x509.NewCertPool()
	if k.settings.ClientCAFile != "" {
		if callers, err = clientCAs(k.Root, k.settings.ClientCAFile); err != nil {
			return nil, nil, err
		}
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(k.Machine.Address, strconv.Itoa(Port)), &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.VerifyClientCertIfGiven, ClientCAs: callers,
		MinVersion: tls.VersionTLS12,
		// Streams are upgraded connections, which HTTP/2 does not have.
		NextProtos: []string{"http/1.1"},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("serve the kubelet's API: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/healthz", healthy)
	mux.HandleFunc("/portForward/{namespace}/{pod}", p.portForward)
	mux.HandleFunc("/portForward/{namespace}/{pod}/{uid}", p.portForward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", p.logs)
	for _, path := range []string{"/exec/", "/attach/", "/run/", "/checkpoint/"} {
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "a process guest has no containers to enter", http.StatusNotImplemented)
		})
	}
	return k.authorized(mux), listener, nil
}

// authorized asks the API server whether the caller may use the node's proxy
// subresource, as a kubelet in Webhook mode does.
func (k *Kubelet) authorized(next http.Handler) http.Handler {
	verbs := map[string]string{http.MethodGet: "get", http.MethodHead: "get", http.MethodPost: "create", http.MethodPut: "update", http.MethodDelete: "delete"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		subject := r.TLS.PeerCertificates[0].Subject
		review, err := k.client.AuthorizationV1().SubjectAccessReviews().Create(r.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: subject.CommonName, Groups: append(subject.Organization, "system:authenticated"),
				ResourceAttributes: &authorizationv1.ResourceAttributes{
					Verb: verbs[r.Method], Resource: "nodes", Subresource: "proxy", Name: k.settings.NodeName, Version: "v1"},
			}}, metav1.CreateOptions{})
		if err != nil {
			http.Error(w, fmt.Sprintf("Authorization error (user=%s): %v", subject.CommonName, err), http.StatusInternalServerError)
			return
		}
		if !review.Status.Allowed {
			http.Error(w, fmt.Sprintf("Forbidden (user=%s, verb=%s, resource=nodes, subresource=proxy)", subject.CommonName, verbs[r.Method]), http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

func (p *pods) portForward(w http.ResponseWriter, r *http.Request) {
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	pod := p.get(key)
	if pod == nil {
		http.Error(w, fmt.Sprintf("pod %s does not exist", key), http.StatusNotFound)
		return
	}
	options, err := portforward.NewV4Options(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	forwarder := hostForwarder{}
	if pod.Spec.HostNetwork {
		forwarder.address = p.kubelet.Machine.Address
	}
	portforward.ServePortForward(w, r, forwarder, key.Name, string(pod.UID), options, streamIdle, streamCreation, portforward.SupportedProtocols)
}

// hostForwarder connects to a port of a pod on the host network; other pods have
// nothing that listens.
type hostForwarder struct{ address string }

func (f hostForwarder) PortForward(ctx context.Context, pod, _ string, port int32, stream io.ReadWriteCloser) error {
	if f.address == "" {
		return fmt.Errorf("pod %s exists in its status only: nothing listens on port %d", pod, port)
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	conn, err := dialer.DialContext(ctx, "tcp", net.JoinHostPort(f.address, strconv.Itoa(int(port))))
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		_, _ = io.Copy(conn, stream)
		// The caller said all it has to say; the answer may still come.
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	// A caller who leaves early ends the copy too, which is no failure of the port.
	_, _ = io.Copy(stream, conn)
	return nil
}

// logs returns the log of a static pod, whole or its last lines.
func (p *pods) logs(w http.ResponseWriter, r *http.Request) {
	key := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
	state := p.static(key)
	if state == nil || !state.Process {
		http.Error(w, fmt.Sprintf("pod %s exists in its status only: it has no log", key), http.StatusNotFound)
		return
	}
	path := state.Log
	if r.URL.Query().Get("previous") == "true" {
		http.Error(w, "runs of a component share one log: leave out --previous", http.StatusBadRequest)
		return
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		http.Error(w, p.kubelet.Root.Guest(err.Error()), http.StatusInternalServerError)
		return
	}
	text := string(raw)
	if lines, err := strconv.Atoi(r.URL.Query().Get("tailLines")); err == nil {
		text = tail(text, lines)
	}
	w.Header().Set("Content-Type", "text/plain")
	_, _ = io.WriteString(w, text)
}

func tail(text string, lines int) string {
	at := len(text)
	for n := 0; n <= lines && at > 0; n++ {
		if at = strings.LastIndexByte(text[:at], '\n'); at < 0 {
			return text
		}
		if n == 0 && at != len(text)-1 {
			n++
		}
	}
	return text[at+1:]
}
