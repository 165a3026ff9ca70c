package app

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"strings"
)

// idPlan says how the ids of the node's user namespace map to those of the machine.
type idPlan struct {
	// userNamespace is false for root, who needs none.
	userNamespace bool
	// users and groups are subordinate ranges of an ordinary user; without both there is
	// one id only.
	users, groups idRange
}

type idRange struct{ first, count int }

func planIDs() idPlan {
	if os.Geteuid() == 0 {
		return idPlan{}
	}
	plan := idPlan{userNamespace: true}
	for _, helper := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(helper); err != nil {
			return plan
		}
	}
	name := ""
	if current, err := user.Current(); err == nil {
		name = current.Username
	}
	users := subordinateRange("/etc/subuid", name, os.Geteuid())
	groups := subordinateRange("/etc/subgid", name, os.Geteuid())
	if users.count > 0 && groups.count > 0 {
		plan.users, plan.groups = users, groups
	}
	return plan
}

// subordinateRange finds the first range of a user, by name or number, in /etc/subuid or
// /etc/subgid.
func subordinateRange(file, name string, uid int) idRange {
	content, err := os.ReadFile(file)
	if err != nil {
		return idRange{}
	}
	return parseSubordinateRange(string(content), name, uid)
}

func parseSubordinateRange(content, name string, uid int) idRange {
	lines := bufio.NewScanner(strings.NewReader(content))
	for lines.Scan() {
		fields := strings.Split(strings.TrimSpace(lines.Text()), ":")
		if len(fields) != 3 || (fields[0] != name && fields[0] != strconv.Itoa(uid)) {
			continue
		}
		first, firstErr := strconv.Atoi(fields[1])
		count, countErr := strconv.Atoi(fields[2])
		if firstErr == nil && countErr == nil && count > 0 {
			return idRange{first, count}
		}
	}
	return idRange{}
}

// apply maps the ids of a process's new user namespace: its root is the user of this
// process, the others come from the subordinate ranges.
func (p idPlan) apply(pid int) error {
	switch {
	case !p.userNamespace:
		return nil
	case p.users.count > 0:
		if err := mapRange("newuidmap", pid, os.Geteuid(), p.users); err != nil {
			return err
		}
		return mapRange("newgidmap", pid, os.Getegid(), p.groups)
	}
	process := "/proc/" + strconv.Itoa(pid)
	for _, write := range []struct{ file, text string }{
		{"/uid_map", fmt.Sprintf("0 %d 1", os.Geteuid())},
		// Without this a user may not map a group.
		{"/setgroups", "deny"},
		{"/gid_map", fmt.Sprintf("0 %d 1", os.Getegid())},
	} {
		if err := os.WriteFile(process+write.file, []byte(write.text), 0); err != nil {
			return fmt.Errorf("map the ids of the node's user namespace: %w", err)
		}
	}
	return nil
}

// mapRange runs newuidmap or newgidmap, which are allowed to map a subordinate range.
func mapRange(helper string, pid, own int, subordinate idRange) error {
	output, err := exec.Command(helper, strconv.Itoa(pid),
		"0", strconv.Itoa(own), "1",
		"1", strconv.Itoa(subordinate.first), strconv.Itoa(subordinate.count)).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s: %w: %s", helper, err, strings.TrimSpace(string(output)))
	}
	return nil
}
