package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
)

// machine is what an engine changes of the network of the machine that it runs on.
type machine struct {
	// filters are the packet filters' rules, by the program's name: iptables or ip6tables.
	filters map[string]string
	// bridges are the names of the network interfaces.
	interfaces map[string]bool
	// settings are the kernel's, by file.
	settings map[string]string
}

// forwarding are the settings of the kernel that an engine switches on.
var forwarding = []string{
	"/proc/sys/net/ipv4/ip_forward",
	"/proc/sys/net/ipv6/conf/all/forwarding",
	"/proc/sys/net/ipv6/conf/default/forwarding",
}

// look records the network as it is.
func look(ctx context.Context) (machine, error) {
	m := machine{filters: map[string]string{}, interfaces: map[string]bool{}, settings: map[string]string{}}
	for _, program := range []string{"iptables", "ip6tables"} {
		if rules, err := save(ctx, program); err == nil { // a kernel without IPv6 has no rules for it
			m.filters[program] = rules
		}
	}
	all, err := net.Interfaces()
	if err != nil {
		return m, fmt.Errorf("list the machine's network interfaces: %w", err)
	}
	for _, one := range all {
		m.interfaces[one.Name] = true
	}
	for _, file := range forwarding {
		if value, err := os.ReadFile(file); err == nil {
			m.settings[file] = string(value)
		}
	}
	return m, nil
}

func save(ctx context.Context, program string) (string, error) {
	out, err := exec.CommandContext(ctx, program+"-save").Output()
	if err != nil {
		return "", fmt.Errorf("%s-save: %w", program, err)
	}
	return string(out), nil
}

// restore removes what was added since, and nothing else.
func (m machine) restore(ctx context.Context) error {
	var failures []error
	for program, before := range m.filters {
		after, err := save(ctx, program)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if changes := undo(before, after); changes != "" {
			failures = append(failures, feed(ctx, changes, program+"-restore", "--noflush"))
		}
	}
	all, err := net.Interfaces()
	failures = append(failures, err)
	for _, one := range all {
		if !m.interfaces[one.Name] && (one.Name == "docker0" || strings.HasPrefix(one.Name, "br-")) {
			failures = append(failures, feed(ctx, "", "ip", "link", "delete", one.Name))
		}
	}
	for file, value := range m.settings {
		if now, err := os.ReadFile(file); err == nil && string(now) != value {
			failures = append(failures, os.WriteFile(file, []byte(value), 0))
		}
	}
	return errors.Join(failures...)
}

func feed(ctx context.Context, input, name string, args ...string) error {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdin = strings.NewReader(input)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("restore the machine's network: %s: %w\n%s", name, err, tail(out.Bytes()))
	}
	return nil
}

// table is one table of a packet filter: its chains with their policies, and its rules.
type table struct {
	name   string
	chains map[string]string
	order  []string
	rules  []string
}

// parse reads what iptables-save prints.
func parse(saved string) []table {
	var tables []table
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		if name, found := strings.CutPrefix(line, "*"); found {
			tables = append(tables, table{name: name, chains: map[string]string{}})
			continue
		}
		if len(tables) == 0 {
			continue
		}
		current := &tables[len(tables)-1]
		if chain, found := strings.CutPrefix(line, ":"); found {
			name, rest, _ := strings.Cut(chain, " ")
			policy, _, _ := strings.Cut(rest, " ")
			current.chains[name] = policy
			current.order = append(current.order, name)
		}
		if strings.HasPrefix(line, "-A ") {
			current.rules = append(current.rules, line)
		}
	}
	return tables
}

// userChain is the policy of a chain that is not built in.
const userChain = "-"

// undo is the input of iptables-restore that takes back what was added between two prints of
// iptables-save; empty if nothing was.
func undo(before, after string) string {
	old := map[string]table{}
	for _, t := range parse(before) {
		old[t.name] = t
	}
	var text strings.Builder
	for _, t := range parse(after) {
		lines := undoTable(old[t.name], t)
		if len(lines) > 0 {
			fmt.Fprintf(&text, "*%s\n%s\nCOMMIT\n", t.name, strings.Join(lines, "\n"))
		}
	}
	return text.String()
}

// undoTable deletes the rules of chains that stay one by one, then the chains that are new: empties
// all of them first, for they refer to each other.
func undoTable(before, after table) []string {
	var policies, deletions, flushes, removals []string
	for _, chain := range after.order {
		policy, existed := before.chains[chain]
		switch {
		case existed && policy != after.chains[chain]:
			policies = append(policies, fmt.Sprintf(":%s %s [0:0]", chain, policy))
		case !existed && after.chains[chain] == userChain:
			flushes, removals = append(flushes, "-F "+chain), append(removals, "-X "+chain)
		case !existed && after.chains[chain] != "ACCEPT": // a table that nobody had used has this policy
			policies = append(policies, fmt.Sprintf(":%s ACCEPT [0:0]", chain))
		}
	}
	left := map[string]int{}
	for _, rule := range before.rules {
		left[rule]++
	}
	for _, rule := range after.rules {
		if left[rule] > 0 {
			left[rule]--
			continue
		}
		chain := strings.Fields(rule)[1]
		if _, existed := before.chains[chain]; existed || after.chains[chain] != userChain {
			deletions = append(deletions, "-D"+strings.TrimPrefix(rule, "-A"))
		}
	}
	return append(append(append(policies, deletions...), flushes...), removals...)
}
