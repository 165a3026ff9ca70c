package image

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestLookupUser(t *testing.T) {
	root := t.TempDir()
	files := map[string]string{
		"passwd": "root:x:0:0:root:/root:/bin/sh\nbroken line\napp:x:1000:1001::/:/bin/sh\n",
		"group":  "root:x:0:\napp:x:1001:\nextra:x:2000:other,app\nmore:x:2001:app\n",
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(root, "etc", name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		spec   string
		want   User
		failed bool
	}{
		{spec: "", want: User{}},
		{spec: "root", want: User{}},
		{spec: "app", want: User{UID: 1000, GID: 1001, Groups: []uint32{2000, 2001}}},
		{spec: "1000", want: User{UID: 1000, GID: 1001, Groups: []uint32{2000, 2001}}},
		{spec: "65532", want: User{UID: 65532}},
		{spec: "65532:65533", want: User{UID: 65532, GID: 65533}},
		{spec: "app:extra", want: User{UID: 1000, GID: 2000}},
		{spec: "app:", want: User{UID: 1000, GID: 1001, Groups: []uint32{2000, 2001}}},
		{spec: "nobody", failed: true},
		{spec: "app:nogroup", failed: true},
		{spec: "-1", failed: true},
		{spec: "4294967296", failed: true},
	}
	for _, test := range tests {
		got, err := LookupUser(root, test.spec)
		if (err != nil) != test.failed {
			t.Errorf("%q: error %v", test.spec, err)
			continue
		}
		if err == nil && (got.UID != test.want.UID || got.GID != test.want.GID || !slices.Equal(got.Groups, test.want.Groups)) {
			t.Errorf("%q: got %+v, want %+v", test.spec, got, test.want)
		}
	}
}

func TestLookupUserWithoutFiles(t *testing.T) {
	root := t.TempDir()
	if got, err := LookupUser(root, "65532:65532"); err != nil || got.UID != 65532 || got.GID != 65532 {
		t.Errorf("a numeric user of an image without /etc/passwd: %+v, %v", got, err)
	}
	if _, err := LookupUser(root, "app"); err == nil {
		t.Error("a name was found in an image without /etc/passwd")
	}
}

func TestLookupUserDoesNotLeaveTheImage(t *testing.T) {
	root := t.TempDir()
	outside := filepath.Join(t.TempDir(), "passwd")
	if err := os.WriteFile(outside, []byte("host:x:7:7::/:/\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "etc"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, filepath.Join(root, "etc", "passwd")); err != nil {
		t.Fatal(err)
	}
	if user, err := LookupUser(root, "host"); err == nil {
		t.Errorf("found the machine's user %+v", user)
	}
}
