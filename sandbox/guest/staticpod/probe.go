package staticpod

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probeClient does what a kubelet's does: it takes any certificate and follows
// no redirect.
var probeClient = &http.Client{
	Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{InsecureSkipVerify: true},
		MaxIdleConnsPerHost: 1,
		IdleConnTimeout:     time.Minute,
	},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// check is one probe of a container with its schedule.
type check struct {
	url       string
	timeout   time.Duration
	period    time.Duration
	threshold int32

	next     time.Time
	failures int32
}

// newCheck returns nil for a probe that is not there or not HTTP: it holds.
func newCheck(probe *corev1.Probe, container *corev1.Container, host Host, period time.Duration) *check {
	if probe == nil || probe.HTTPGet == nil {
		return nil
	}
	get := probe.HTTPGet
	scheme := strings.ToLower(string(get.Scheme))
	if scheme == "" {
		scheme = "http"
	}
	timeout := time.Duration(probe.TimeoutSeconds) * time.Second
	if timeout <= 0 {
		timeout = time.Second
	}
	threshold := probe.FailureThreshold
	if threshold <= 0 {
		threshold = 3
	}
	if wanted := time.Duration(probe.PeriodSeconds) * time.Second; wanted > period {
		period = wanted
	}
	return &check{
		url:     fmt.Sprintf("%s://%s/%s", scheme, net.JoinHostPort(host.listen(get.Host), strconv.Itoa(port(get.Port, container))), strings.TrimPrefix(get.Path, "/")),
		timeout: timeout, period: period, threshold: threshold,
	}
}

func port(value intstr.IntOrString, container *corev1.Container) int {
	if value.Type == intstr.Int {
		return value.IntValue()
	}
	for _, p := range container.Ports {
		if p.Name == value.StrVal {
			return int(p.ContainerPort)
		}
	}
	return value.IntValue()
}

// ok runs the probe and counts failures in a row.
func (c *check) ok(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c.failures++
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return false
	}
	response, err := probeClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close()
	if response.StatusCode < 200 || response.StatusCode >= 400 {
		return false
	}
	c.failures = 0
	return true
}
