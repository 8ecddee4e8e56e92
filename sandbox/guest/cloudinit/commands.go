package cloudinit

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"

	"github.com/millwright-dev/millwright/sandbox/guest/rootfs"
)

// Shell carries out the commands of a cloud-config as far as a guest that is a
// process can: inside its root, and no program of the host.
type Shell struct {
	Root rootfs.Root
	// Kubeadm is called with the arguments after "kubeadm".
	Kubeadm func(args []string) error
	// SetHostname is called for hostnamectl set-hostname.
	SetHostname func(name string)
	// Log writes to the console.
	Log func(format string, args ...any)

	// Kubeadms counts the runs of kubeadm init and join.
	Kubeadms int

	// failures of kubeadm; those of other commands only steer && and ||.
	failures []error
}

// Run carries out the commands in order, each whether or not those before it
// failed, as the script that cloud-init makes of runcmd does. It returns the
// failures of kubeadm and the commands that would run kubeadm in a way that the
// guest cannot follow. Commands that are not run are taken to succeed.
func (s *Shell) Run(list []Command) error {
	s.failures = nil
	for _, command := range list {
		if command.Shell != "" {
			s.line(command.Shell)
		} else if len(command.Args) > 0 {
			s.program(command.Args)
		}
	}
	return errors.Join(s.failures...)
}

func (s *Shell) fail(err error) error {
	if err != nil {
		s.failures = append(s.failures, err)
	}
	return err
}

func (s *Shell) program(args []string) {
	if script, ok := shellScript(args); ok {
		s.line(script)
		return
	}
	_ = s.step(step{args: args}, strings.Join(args, " "))
}

// shellScript returns what sh -c would run.
func shellScript(args []string) (string, bool) {
	if len(args) < 3 {
		return "", false
	}
	switch path.Base(args[0]) {
	case "sh", "bash", "dash":
		flags := args[1]
		return args[2], strings.HasPrefix(flags, "-") && strings.HasSuffix(flags, "c")
	}
	return "", false
}

func (s *Shell) line(line string) {
	steps, err := parseLine(line)
	if err != nil {
		if runsKubeadm(line) {
			_ = s.fail(fmt.Errorf("command %q: the sandbox understands kubeadm only in simple commands joined by && or ;", line))
			return
		}
		s.notRun(line)
		return
	}
	var last error
	for _, step := range steps {
		if step.when == afterSuccess && last != nil || step.when == afterFailure && last == nil {
			continue
		}
		last = s.step(step, line)
	}
}

func (s *Shell) step(step step, whole string) error {
	args := step.args
	if path.Base(args[0]) == "sudo" && len(args) > 1 {
		args = args[1:]
	}
	switch path.Base(args[0]) {
	case "kubeadm":
		if len(args) > 1 && (args[1] == "init" || args[1] == "join") {
			s.Kubeadms++
			s.Log("+ %s", strings.Join(args, " "))
			return s.fail(s.Kubeadm(args[1:]))
		}
	case "echo":
		if step.redirect != "" {
			return s.echo(step)
		}
	case "mkdir":
		if made, err := s.mkdir(args[1:]); made || err != nil {
			return err
		}
	case "hostnamectl":
		if len(args) == 3 && args[1] == "set-hostname" || len(args) == 3 && args[1] == "hostname" {
			s.SetHostname(args[2])
			return nil
		}
	case "true", ":":
		return nil
	}
	if len(step.args) > 1 && runsKubeadm(strings.Join(step.args[1:], " ")) {
		return s.fail(fmt.Errorf("command %q: the sandbox cannot run kubeadm through %s", whole, args[0]))
	}
	s.notRun(strings.Join(step.args, " "))
	return nil
}

func (s *Shell) notRun(command string) {
	for n, line := range strings.Split(strings.TrimSpace(command), "\n") {
		if n == 0 {
			s.Log("+ %s    # not run: a process guest leaves the host alone", line)
			continue
		}
		s.Log("  %s", line)
	}
}

// echo writes into a file that the guest's root has a folder for.
func (s *Shell) echo(step step) error {
	words := step.args[1:]
	end := "\n"
	if len(words) > 0 && words[0] == "-n" {
		words, end = words[1:], ""
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if step.append {
		flags = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	file, err := os.OpenFile(s.Root.Path(step.redirect), flags, 0o644)
	if err != nil {
		s.Log("sh: cannot create %s: %v", step.redirect, unwrapped(err))
		return fmt.Errorf("echo > %s: %w", step.redirect, unwrapped(err))
	}
	defer file.Close()
	_, err = file.WriteString(strings.Join(words, " ") + end)
	return err
}

func (s *Shell) mkdir(args []string) (made bool, err error) {
	parents := false
	var folders []string
	for _, arg := range args {
		switch {
		case arg == "-p" || arg == "--parents":
			parents = true
		case strings.HasPrefix(arg, "-"):
			return false, nil
		default:
			folders = append(folders, arg)
		}
	}
	for _, folder := range folders {
		make := os.Mkdir
		if parents {
			make = os.MkdirAll
		}
		if err := make(s.Root.Path(folder), 0o755); err != nil {
			s.Log("mkdir: cannot create directory '%s': %v", folder, unwrapped(err))
			return true, fmt.Errorf("mkdir %s: %w", folder, unwrapped(err))
		}
	}
	return len(folders) > 0, nil
}

// runsKubeadm tells whether text has kubeadm init or join as words.
func runsKubeadm(text string) bool {
	words := strings.Fields(text)
	for n := 0; n+1 < len(words); n++ {
		if path.Base(strings.Trim(words[n], `"'({;`)) == "kubeadm" {
			if verb := strings.Trim(words[n+1], `"');`); verb == "init" || verb == "join" {
				return true
			}
		}
	}
	return false
}

// unwrapped drops the host's path from an error of the file system.
func unwrapped(err error) error {
	var pathError *os.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
