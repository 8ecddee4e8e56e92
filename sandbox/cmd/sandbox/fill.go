package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millwright-dev/millwright/sandbox/internal/fill"
)

func newFill() *cobra.Command {
	var files []string
	cmd := &cobra.Command{
		Use:   "fill FILE [NAME=VALUE...]",
		Short: "Print a cluster template with its ${VARIABLES} filled in",
		Long: "Fills ${NAME} and ${NAME:=default} of a cluster template (- reads standard input) from the arguments, then the files given with --env, " +
			"then the environment. Every variable without a value is named at once.",
		Example: "  bin/sandbox fill --env .sandbox/vsphere.env sandbox/templates/cluster.yaml CLUSTER_NAME=demo | kubectl apply -f -",
		Args:    arguments(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			lookup, err := variables(args[1:], files)
			if err != nil {
				return err
			}
			template, err := readTemplate(cmd.InOrStdin(), args[0])
			if err != nil {
				return err
			}
			filled, err := fill.Fill(template, lookup)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			_, err = io.WriteString(cmd.OutOrStdout(), filled)
			return err
		},
	}
	cmd.Flags().StringArrayVar(&files, "env", nil, "file with variables, such as .sandbox/vsphere.env")
	return cmd
}

func variables(args, files []string) (fill.Lookup, error) {
	values := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		vars, err := fill.ParseEnvironment(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for name, value := range vars {
			values[name] = value
		}
	}
	for _, arg := range args {
		name, value, ok := strings.Cut(arg, "=")
		if !ok {
			return nil, usageError{fmt.Errorf("argument %q: want NAME=VALUE", arg)}
		}
		values[name] = value
	}
	return func(name string) (string, bool) {
		if value, ok := values[name]; ok {
			return value, true
		}
		return os.LookupEnv(name)
	}, nil
}

func readTemplate(stdin io.Reader, file string) (string, error) {
	if file == "-" {
		text, err := io.ReadAll(stdin)
		return string(text), err
	}
	text, err := os.ReadFile(file)
	return string(text), err
}
