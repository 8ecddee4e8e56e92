package process

import (
	"fmt"
	"os"
	"strings"
	"sync"
)

// bootID tells this boot from the others: start times count from boot.
var bootID = sync.OnceValue(func() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "boot"
	}
	return strings.TrimSpace(string(id))
})

// startOf reads field 22, starttime, of proc_pid_stat(5).
func startOf(pid int) (string, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	// The name in parentheses may hold spaces and parentheses itself.
	_, rest, ok := strings.Cut(string(stat[strings.LastIndexByte(string(stat), ')')+1:]), " ")
	fields := strings.Fields(rest)
	if !ok || len(fields) < 20 {
		return "", fmt.Errorf("process %d: cannot read its start time", pid)
	}
	if state := fields[0]; state == "Z" || state == "X" {
		return "", fmt.Errorf("process %d: has ended", pid)
	}
	return bootID() + "/" + fields[19], nil
}
