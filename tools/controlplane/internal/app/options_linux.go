package app

import (
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/trussiumhq/trussium-operator/tools/controlplane/internal/statedir"
)

// options are the flags of the command up.
type options struct {
	dir                        string
	node                       bool
	keep                       bool
	control                    string
	lifeline                   int
	listener                   int
	mirrors                    map[string]string
	apiServerArguments         []string
	controllerManagerArguments []string
}

func parseOptions(arguments []string) (options, error) {
	var o options
	flags := pflag.NewFlagSet("up", pflag.ContinueOnError)
	flags.StringVar(&o.dir, "dir", "", "folder for state and logs; removed at the end unless --keep")
	flags.BoolVar(&o.node, "node", false, "also run the controllers, the scheduler and a node")
	flags.BoolVar(&o.keep, "keep", false, "leave the folder at the end")
	flags.StringVar(&o.control, "control", "", "identity of this program, repeated in the status")
	flags.IntVar(&o.lifeline, "lifeline-fd", -1, "file descriptor of a pipe; the cluster ends when its other end is closed")
	flags.IntVar(&o.listener, "listener-fd", -1, "file descriptor of the socket where the API server is reached from outside")
	_ = flags.MarkHidden("listener-fd") // for the inner process
	flags.StringToStringVar(&o.mirrors, "mirror", nil, "registry host = base URL that serves it instead (may be repeated)")
	flags.StringArrayVar(&o.apiServerArguments, "apiserver-arg", nil, "argument added to the API server's (may be repeated)")
	flags.StringArrayVar(&o.controllerManagerArguments, "controller-manager-arg", nil, "argument added to the controller manager's (may be repeated)")
	if err := flags.Parse(arguments); err != nil {
		return options{}, err
	}
	if flags.NArg() > 0 {
		return options{}, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.dir == "" {
		return options{}, fmt.Errorf("--dir is required")
	}
	absolute, err := filepath.Abs(o.dir)
	if err != nil {
		return options{}, fmt.Errorf("--dir: %w", err)
	}
	o.dir = absolute
	for host, base := range o.mirrors {
		if err := checkMirror(base); err != nil {
			return options{}, fmt.Errorf("--mirror %s=%s: %w", host, base, err)
		}
	}
	return o, nil
}

func checkMirror(base string) error {
	u, err := url.Parse(base)
	if err != nil {
		return err
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("want a base URL such as http://127.0.0.1:5001")
	}
	return nil
}

// arguments are the flags that make the same options again, for the inner process.
func (o options) arguments() []string {
	arguments := []string{"--dir=" + o.dir, "--control=" + o.control, "--node"}
	if o.keep {
		arguments = append(arguments, "--keep")
	}
	for host, base := range o.mirrors {
		arguments = append(arguments, "--mirror="+host+"="+base)
	}
	for _, argument := range o.apiServerArguments {
		arguments = append(arguments, "--apiserver-arg="+argument)
	}
	for _, argument := range o.controllerManagerArguments {
		arguments = append(arguments, "--controller-manager-arg="+argument)
	}
	return arguments
}

func (o options) state() statedir.Dir { return statedir.Dir(strings.TrimSuffix(o.dir, "/")) }
