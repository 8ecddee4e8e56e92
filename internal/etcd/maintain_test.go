package etcd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"

	"github.com/millwright-dev/millwright/internal/pki"
)

// keeper is a member whose database can be copied.
type keeper struct {
	*fakeMember
	chunks       [][]byte
	defragmented bool
}

func (k *keeper) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{
		Header: &etcdserverpb.ResponseHeader{MemberId: 2, Revision: 40}, Version: "3.7.3", Leader: 1,
		DbSize: 4096, DbSizeInUse: 1024, RaftTerm: 7, Errors: []string{"NOSPACE"},
	}, nil
}

func (k *keeper) Snapshot(_ *etcdserverpb.SnapshotRequest, stream grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	for _, chunk := range k.chunks {
		if err := stream.Send(&etcdserverpb.SnapshotResponse{Header: &etcdserverpb.ResponseHeader{}, Blob: chunk}); err != nil {
			return err
		}
	}
	return nil
}

func (k *keeper) Defragment(context.Context, *etcdserverpb.DefragmentRequest) (*etcdserverpb.DefragmentResponse, error) {
	k.defragmented = true
	return &etcdserverpb.DefragmentResponse{Header: &etcdserverpb.ResponseHeader{}}, nil
}

func database(pages int) []byte {
	data := bytes.Repeat([]byte("millwright etcd "), pages*pageSize/16)
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

func TestSnapshotIsWholeOrFails(t *testing.T) {
	whole := database(8)
	flipped := bytes.Clone(whole)
	flipped[100] ^= 1
	tests := map[string]struct {
		chunks  [][]byte
		damaged bool
	}{
		"in one piece":                      {chunks: [][]byte{whole}},
		"the hash split between two pieces": {chunks: [][]byte{whole[:len(whole)-7], whole[len(whole)-7:]}},
		"many small pieces":                 {chunks: pieces(whole, 13)},
		"a bit has changed":                 {chunks: [][]byte{flipped}, damaged: true},
		"the hash is missing":               {chunks: [][]byte{whole[:len(whole)-sha256.Size]}, damaged: true},
		"the end is missing":                {chunks: [][]byte{whole[:1000]}, damaged: true},
		"nothing came":                      {damaged: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var got bytes.Buffer
			size, err := connectTo(t, &keeper{fakeMember: threeMembers(), chunks: tc.chunks}).Snapshot(soon(t), &got)
			if (err != nil) != tc.damaged || tc.damaged && !errors.Is(err, ErrDamaged) {
				t.Fatalf("error %v, damaged is %t", err, tc.damaged)
			}
			if sent := bytes.Join(tc.chunks, nil); !bytes.Equal(got.Bytes(), sent) || size != int64(len(sent)) {
				t.Errorf("got %d bytes (%d told), sent %d", got.Len(), size, len(sent))
			}
			if err := VerifySnapshot(&got); (err != nil) != tc.damaged {
				t.Errorf("verify: %v, damaged is %t", err, tc.damaged)
			}
		})
	}
}

func pieces(data []byte, size int) [][]byte {
	var out [][]byte
	for len(data) > size {
		out, data = append(out, data[:size]), data[size:]
	}
	return append(out, data)
}

func TestMemberReportsOnItself(t *testing.T) {
	got, err := connectTo(t, &keeper{fakeMember: threeMembers()}).Report(soon(t))
	if err != nil {
		t.Fatal(err)
	}
	want := Report{Member: 2, Leader: 1, Version: "3.7.3", Size: 4096, InUse: 1024, Term: 7, Revision: 40, Errors: []string{"NOSPACE"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestDefragmentReachesTheMember(t *testing.T) {
	member := &keeper{fakeMember: threeMembers()}
	if err := connectTo(t, member).Defragment(soon(t)); err != nil {
		t.Fatal(err)
	}
	if !member.defragmented {
		t.Error("the member was not asked")
	}
}

func connectTo(t *testing.T, member *keeper) *Client {
	t.Helper()
	ca := ecdsaCA(t)
	dial := member.serveAs(t, ca, member)
	client, err := pki.NewClientCert(ca, "millwright", nil, pki.Options{Algorithm: pki.ECDSAP256})
	if err != nil {
		t.Fatal(err)
	}
	config, err := ClientTLS(member.serverCA, client)
	if err != nil {
		t.Fatal(err)
	}
	c, err := New("etcd-cp-2", dial, config, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}
