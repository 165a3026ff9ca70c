package image

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	securejoin "github.com/cyphar/filepath-securejoin"
)

// User is who a container's process runs as.
type User struct {
	UID, GID uint32
	// Groups are the supplementary groups that the image's /etc/group gives the user.
	Groups []uint32
}

// LookupUser finds the user of an image configuration ("", "user", "uid", "user:group",
// "uid:gid") in the /etc/passwd and /etc/group of the unpacked image. A numeric user needs
// no entry there; its group is then 0.
func LookupUser(root, spec string) (User, error) {
	userName, groupName, hasGroup := strings.Cut(spec, ":")
	if userName == "" {
		userName = "0"
	}
	user, loginName, err := lookupPasswd(root, userName)
	if err != nil {
		return User{}, err
	}
	if hasGroup && groupName != "" {
		user.GID, err = lookupGroup(root, groupName)
		return user, err
	}
	user.Groups, err = groupsOf(root, loginName)
	return user, err
}

// lookupPasswd finds a user by name or number.
func lookupPasswd(root, user string) (found User, loginName string, err error) {
	uid, numeric := parseID(user)
	err = eachLine(root, "/etc/passwd", func(fields []string) bool {
		if len(fields) < 4 {
			return true
		}
		entryUID, ok := parseID(fields[2])
		entryGID, okGroup := parseID(fields[3])
		if !ok || !okGroup || (fields[0] != user && (!numeric || entryUID != uid)) {
			return true
		}
		found = User{UID: entryUID, GID: entryGID}
		loginName = fields[0]
		return false
	})
	if err != nil || loginName != "" {
		return found, loginName, err
	}
	if !numeric {
		return User{}, "", fmt.Errorf("user %q is not in the image's /etc/passwd", user)
	}
	return User{UID: uid}, "", nil
}

func lookupGroup(root, group string) (gid uint32, err error) {
	if gid, ok := parseID(group); ok {
		return gid, nil
	}
	found := false
	err = eachLine(root, "/etc/group", func(fields []string) bool {
		if len(fields) < 3 || fields[0] != group {
			return true
		}
		gid, found = parseID(fields[2])
		return !found
	})
	if err == nil && !found {
		err = fmt.Errorf("group %q is not in the image's /etc/group", group)
	}
	return gid, err
}

// groupsOf returns the groups whose member list names the user.
func groupsOf(root, loginName string) ([]uint32, error) {
	if loginName == "" {
		return nil, nil
	}
	var groups []uint32
	err := eachLine(root, "/etc/group", func(fields []string) bool {
		if len(fields) < 4 || !slices.Contains(strings.Split(fields[3], ","), loginName) {
			return true
		}
		if gid, ok := parseID(fields[2]); ok {
			groups = append(groups, gid)
		}
		return true
	})
	return groups, err
}

func parseID(text string) (uint32, bool) {
	id, err := strconv.ParseUint(text, 10, 31)
	return uint32(id), err == nil
}

// eachLine calls use with the fields of each line until it returns false. A missing file
// has no lines.
func eachLine(root, name string, use func(fields []string) bool) error {
	path, err := securejoin.SecureJoin(root, name)
	if err != nil {
		return err
	}
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the image's %s: %w", name, err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if !use(strings.Split(strings.TrimSpace(lines.Text()), ":")) {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("read the image's %s: %w", name, err)
	}
	return nil
}
