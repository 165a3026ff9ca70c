package nodeimage

import (
	"debug/elf"
	"path/filepath"
	"strings"
)

// Where Debian has libraries on amd64, and the program that links them at start.
const (
	libraries = "usr/lib/x86_64-linux-gnu"
	linker    = "ld-linux-x86-64.so.2"
)

// proxyPrograms are what kube-proxy calls.
var proxyPrograms = []string{
	"usr/sbin/xtables-nft-multi", "usr/sbin/xtables-legacy-multi", "usr/sbin/nft", "usr/sbin/conntrack", "usr/bin/kmod",
}

// addProxyTools adds the programs that kube-proxy calls, with their libraries, from the node's Debian.
func (n node) addProxyTools(c *component) error {
	for name, target := range map[string]string{"sbin": "usr/sbin", "bin": "usr/bin", "lib": "usr/lib", "lib64": "usr/lib64"} {
		c.links[name] = target
	}
	wanted := append([]string{}, proxyPrograms...)
	extensions, err := filepath.Glob(filepath.Join(n.root, libraries, "xtables", "*.so"))
	if err != nil {
		return err
	}
	for _, extension := range extensions {
		wanted = append(wanted, libraries+"/xtables/"+filepath.Base(extension))
	}
	for _, name := range wanted {
		if err := n.addLinked(c, name); err != nil {
			return err
		}
	}
	c.files["usr/lib64/"+linker] = filepath.Join(n.root, libraries, linker)
	for _, name := range []string{"iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore"} {
		c.links["usr/sbin/"+name] = "xtables-nft-multi"
		c.links["usr/sbin/"+strings.Replace(name, "tables", "tables-legacy", 1)] = "xtables-legacy-multi"
	}
	c.links["usr/sbin/modprobe"] = "../bin/kmod"
	return nil
}

// addLinked adds a file of the node and, recursively, the libraries that it is linked with.
func (n node) addLinked(c *component, name string) error {
	if _, done := c.files[name]; done {
		return nil
	}
	path, err := filepath.EvalSymlinks(filepath.Join(n.root, name))
	if err != nil {
		return err
	}
	c.files[name] = path
	file, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	linked, err := file.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, library := range linked {
		if err := n.addLinked(c, libraries+"/"+library); err != nil {
			return err
		}
	}
	return nil
}
