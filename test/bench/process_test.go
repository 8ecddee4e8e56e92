package bench

import (
	"os"
	"testing"
	"time"
)

func TestProcessorTimeIsFoundBehindAnyName(t *testing.T) {
	got, err := parseStat("42 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20 0")
	if err != nil || got != 3*time.Second {
		t.Errorf("%s, error %v; want 3s", got, err)
	}
	if _, err := parseStat("42 (a) S 1"); err == nil {
		t.Error("a line that is too short is taken")
	}
}

func TestAProcessHasAPeakOfMemory(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		t.Skip("this system has no /proc")
	}
	if got, err := peakMiB(os.Getpid()); err != nil || got < 1 {
		t.Errorf("%.1f MiB, error %v", got, err)
	}
}
