package management

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"
)

// readyEvery is how often a starting program is asked whether it is ready: it
// has nothing to watch yet.
const readyEvery = 50 * time.Millisecond

// WaitReady waits until the API server answers /readyz with ok.
func WaitReady(ctx context.Context, config *rest.Config) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return waitOK(ctx, client, config.Host+"/readyz")
}

// WaitReady waits until the controller manager runs its controllers. Its
// certificate is one that it makes for itself; nothing secret is asked.
func (p Program) WaitReady(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	return waitOK(ctx, client, "https://"+p.Listen+"/healthz")
}

// waitOK asks url until it answers with 200.
func waitOK(ctx context.Context, client *http.Client, url string) error {
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		last := get(ctx, client, url)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s: %w", url, context.Cause(ctx)), last)
		case <-ticker.C:
		}
	}
}

func get(ctx context.Context, client *http.Client, url string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", url, resp.Status)
	}
	return nil
}
