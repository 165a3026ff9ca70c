package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func entry(name, content string) tar.Header {
	return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, Size: int64(len(content)), Linkname: content}
}

func directory(name string) tar.Header {
	return tar.Header{Typeflag: tar.TypeDir, Name: name, Mode: 0o755}
}

func link(kind byte, name, target string) tar.Header {
	return tar.Header{Typeflag: kind, Name: name, Linkname: target, Mode: 0o777}
}

// archive makes a layer; the content of a regular file is in its Linkname.
func archive(t *testing.T, headers ...tar.Header) io.Reader {
	t.Helper()
	var buffer bytes.Buffer
	w := tar.NewWriter(&buffer)
	for _, header := range headers {
		content := ""
		if header.Typeflag == tar.TypeReg {
			content, header.Linkname = header.Linkname, ""
		}
		header.Uid, header.Gid = os.Getuid(), os.Getgid()
		if err := w.WriteHeader(&header); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, content); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return &buffer
}

// tree lists the files below root with their content or link target.
func tree(t *testing.T, root string) []string {
	t.Helper()
	var files []string
	err := filepath.Walk(root, func(path string, info os.FileInfo, err error) error {
		if err != nil || path == root {
			return err
		}
		name, _ := filepath.Rel(root, path)
		switch {
		case info.IsDir():
			files = append(files, name+"/")
		case info.Mode()&os.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			files = append(files, name+"->"+target)
		default:
			content, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			files = append(files, name+"="+string(content))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func TestUnpack(t *testing.T) {
	tests := map[string]struct {
		layers [][]tar.Header
		want   []string
	}{
		"a later layer replaces a file": {
			[][]tar.Header{{entry("a", "1")}, {entry("a", "2")}},
			[]string{"a=2"},
		},
		"a file replaces a folder and a folder a file": {
			[][]tar.Header{{directory("a"), entry("a/b", "1"), entry("c", "1")}, {entry("a", "2"), directory("c")}},
			[]string{"a=2", "c/"},
		},
		"a folder of a later layer keeps its content": {
			[][]tar.Header{{directory("a"), entry("a/b", "1")}, {directory("a")}},
			[]string{"a/", "a/b=1"},
		},
		"a missing folder is made": {
			[][]tar.Header{{entry("a/b/c", "1")}},
			[]string{"a/", "a/b/", "a/b/c=1"},
		},
		"a whiteout deletes a file and a folder": {
			[][]tar.Header{{entry("a", "1"), entry("b/c", "1"), entry("d", "1")}, {entry(".wh.a", ""), entry(".wh.b", "")}},
			[]string{"d=1"},
		},
		"a whiteout spares its own layer": {
			[][]tar.Header{{entry("a", "1")}, {entry("a", "2"), entry(".wh.a", "")}},
			[]string{"a=2"},
		},
		"an opaque whiteout empties a folder": {
			[][]tar.Header{{entry("a/b", "1"), entry("a/c/d", "1")}, {entry("a/.wh..wh..opq", ""), entry("a/e", "2")}},
			[]string{"a/", "a/e=2"},
		},
		"an opaque whiteout spares its own layer, in any order": {
			[][]tar.Header{{entry("a/b/old", "1")}, {entry("a/b/new", "2"), entry("a/.wh..wh..opq", "")}},
			[]string{"a/", "a/b/", "a/b/new=2"},
		},
		"links are kept as they are": {
			[][]tar.Header{{entry("a", "1"), link(tar.TypeSymlink, "b", "/a"), link(tar.TypeLink, "c", "a")}},
			[]string{"a=1", "b->/a", "c=1"},
		},
		"a link to a folder is followed inside the image": {
			[][]tar.Header{{directory("usr"), directory("usr/bin"), link(tar.TypeSymlink, "bin", "/usr/bin")}, {entry("bin/sh", "1")}},
			[]string{"bin->/usr/bin", "usr/", "usr/bin/", "usr/bin/sh=1"},
		},
		"devices are left out": {
			[][]tar.Header{{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}, {Typeflag: tar.TypeFifo, Name: "pipe"}}},
			nil,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			for _, layer := range test.layers {
				if err := Unpack(root, archive(t, layer...)); err != nil {
					t.Fatal(err)
				}
			}
			if got := tree(t, root); !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestUnpackStaysInside unpacks layers that try to write to, link to or delete a file
// outside of the root. Whether they are refused or turned inside is the same to the file.
func TestUnpackStaysInside(t *testing.T) {
	tests := map[string][]tar.Header{
		"dots":                     {entry("../outside/secret", "changed")},
		"dots inside":              {entry("a/../../outside/secret", "changed")},
		"absolute name":            {entry("OUTSIDE/secret", "changed")},
		"through a symbolic link":  {link(tar.TypeSymlink, "out", "OUTSIDE"), entry("out/secret", "changed")},
		"through dots in a link":   {link(tar.TypeSymlink, "out", "../outside"), entry("out/secret", "changed")},
		"over a link to a file":    {link(tar.TypeSymlink, "out", "OUTSIDE/secret"), entry("out", "changed")},
		"whiteout through a link":  {link(tar.TypeSymlink, "out", "../outside"), entry("out/.wh.secret", "")},
		"whiteout of dots":         {entry(".wh...", "")},
		"opaque through a link":    {link(tar.TypeSymlink, "out", "OUTSIDE"), entry("out/.wh..wh..opq", "")},
		"hard link, then write":    {link(tar.TypeLink, "hard", "../outside/secret"), entry("hard", "changed")},
		"hard link through a link": {link(tar.TypeSymlink, "out", "OUTSIDE"), link(tar.TypeLink, "hard", "out/secret")},
	}
	for name, headers := range tests {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			root, outside := filepath.Join(parent, "root"), filepath.Join(parent, "outside")
			for _, folder := range []string{root, outside} {
				if err := os.Mkdir(folder, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			secret := filepath.Join(outside, "secret")
			if err := os.WriteFile(secret, []byte("kept"), 0o600); err != nil {
				t.Fatal(err)
			}
			for i := range headers {
				headers[i].Name = strings.ReplaceAll(headers[i].Name, "OUTSIDE", outside)
				headers[i].Linkname = strings.ReplaceAll(headers[i].Linkname, "OUTSIDE", outside)
			}
			err := Unpack(root, archive(t, headers...))
			if got := tree(t, outside); !slices.Equal(got, []string{"secret=kept"}) {
				t.Errorf("the folder outside holds %q (unpacking said %v)", got, err)
			}
			if inside, err := os.ReadFile(filepath.Join(root, "hard")); err == nil && string(inside) == "kept" {
				t.Error("the image has a link to the file outside")
			}
		})
	}
}

func TestUnpackKeepsModes(t *testing.T) {
	root := t.TempDir()
	executable := entry("a", "1")
	executable.Mode = 0o4755
	private := directory("b")
	private.Mode = 0o1700
	if err := Unpack(root, archive(t, executable, private)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{
		"a": 0o755 | os.ModeSetuid,
		"b": 0o700 | os.ModeSticky | os.ModeDir,
	} {
		info, err := os.Stat(filepath.Join(root, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode(), want, err)
		}
	}
}
