package etcd

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// ErrDamaged says that a snapshot did not arrive as it was sent.
var ErrDamaged = errors.New("snapshot is damaged")

// pageSize is the unit in which databases are written (512 bytes at least, on every platform): what is left over at the
// end of a snapshot is the hash. etcd's own restore tells them apart in the same way.
const pageSize = 512

// Report is what one member tells of itself. It needs no quorum.
type Report struct {
	Member, Leader uint64
	Version        string
	// Size is that of the database file in bytes, InUse what of it holds data: the rest is what Defragment gives back.
	Size, InUse    int64
	Term, Revision uint64
	Learner        bool
	// Errors the member has, such as an alarm or the lack of a leader.
	Errors []string
}

// Report reads what the member tells of itself.
func (c *Client) Report(ctx context.Context) (Report, error) {
	status, err := c.client.Status(ctx, c.endpoint)
	if err != nil {
		return Report{}, c.explain("read status", err)
	}
	return Report{
		Member: status.Header.GetMemberId(), Leader: status.Leader, Version: status.Version,
		Size: status.DbSize, InUse: status.DbSizeInUse,
		Term: status.RaftTerm, Revision: uint64(status.Header.GetRevision()), Learner: status.IsLearner, Errors: status.Errors,
	}, nil
}

// Defragment gives back the space that the member's database does not use. The member answers nobody meanwhile.
func (c *Client) Defragment(ctx context.Context) error {
	if _, err := c.client.Defragment(ctx, c.endpoint); err != nil {
		return c.explain("defragment", err)
	}
	return nil
}

// Snapshot copies the member's database to out, and returns the bytes that it wrote. What it returns without an error
// ends in the SHA-256 of what is before it, and that was checked.
func (c *Client) Snapshot(ctx context.Context, out io.Writer) (int64, error) {
	// Without a leader the member may have stood aside for long.
	response, err := c.client.SnapshotWithVersion(clientv3.WithRequireLeader(ctx))
	if errors.Is(err, io.EOF) {
		err = fmt.Errorf("%w: nothing came", ErrDamaged)
	}
	if err != nil {
		return 0, c.explain("begin a snapshot", err)
	}
	defer response.Snapshot.Close()
	check := &trailer{hash: sha256.New()}
	size, err := io.Copy(io.MultiWriter(out, check), response.Snapshot)
	if err == nil {
		err = check.verify()
	}
	if err != nil {
		return size, c.explain("copy the snapshot", err)
	}
	return size, nil
}

// VerifySnapshot tells whether a snapshot is whole: it ends in the hash of what is before it.
func VerifySnapshot(snapshot io.Reader) error {
	check := &trailer{hash: sha256.New()}
	if _, err := io.Copy(check, snapshot); err != nil {
		return fmt.Errorf("read the snapshot: %w", err)
	}
	return check.verify()
}

// trailer hashes all that is written to it but the last bytes, which are the hash to compare with.
type trailer struct {
	hash  hash.Hash
	last  []byte
	total int64
}

func (t *trailer) Write(p []byte) (int, error) {
	t.total += int64(len(p))
	t.last = append(t.last, p...)
	if more := len(t.last) - sha256.Size; more > 0 {
		_, _ = t.hash.Write(t.last[:more])
		t.last = append(t.last[:0], t.last[more:]...)
	}
	return len(p), nil
}

func (t *trailer) verify() error {
	switch {
	case t.total%pageSize != sha256.Size:
		return fmt.Errorf("%w: %d bytes are no database followed by its hash", ErrDamaged, t.total)
	case string(t.hash.Sum(nil)) != string(t.last):
		return fmt.Errorf("%w: its hash is not that of its content", ErrDamaged)
	}
	return nil
}
