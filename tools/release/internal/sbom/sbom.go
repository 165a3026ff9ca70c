// Package sbom tells what a Go program is made of, as a CycloneDX document: a software bill of materials. All of
// it comes from what the go command wrote into the program, so that it is about these bytes and no others.
package sbom

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/uuid"
	"github.com/package-url/packageurl-go"
)

// MediaType is that of the documents.
const MediaType = "application/vnd.cyclonedx+json"

// specification is the version of the format. It is not the newest: scanners take time to learn one.
const specification = cdx.SpecVersion1_6

// license is the SPDX identifier of the licence of the programs themselves.
const license = "Apache-2.0"

// Subject is the program that a document is about.
type Subject struct {
	// Name and Version are those of the release.
	Name, Version string
	// Created is the time of the document. The same program and subject give the same bytes.
	Created time.Time
}

// CycloneDX is the document about the Go program that the file holds.
func CycloneDX(file string, subject Subject) ([]byte, error) {
	info, err := buildinfo.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read what %s is built from: %w", file, err)
	}
	digest, err := fileDigest(file)
	if err != nil {
		return nil, fmt.Errorf("hash %s: %w", file, err)
	}
	var out bytes.Buffer
	encoder := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).SetEscapeHTML(false)
	if err := encoder.EncodeVersion(document(info, digest, subject), specification); err != nil {
		return nil, fmt.Errorf("encode the bill of materials of %s: %w", file, err)
	}
	return out.Bytes(), nil
}

// document is the bill of materials of a program with that SHA-256.
func document(info *debug.BuildInfo, digest [sha256.Size]byte, subject Subject) *cdx.BOM {
	own := program(info, digest, subject)
	components := []cdx.Component{standardLibrary(info.GoVersion)}
	for _, module := range info.Deps {
		components = append(components, library(module))
	}
	var refs []string
	for _, component := range components {
		refs = append(refs, component.BOMRef)
	}
	slices.Sort(refs)

	bom := cdx.NewBOM()
	// A number of its own for each program, but not for each time that it is asked about.
	bom.SerialNumber = uuid.NewSHA1(uuid.NameSpaceURL, append([]byte(own.PackageURL), digest[:]...)).URN()
	bom.Metadata = &cdx.Metadata{Timestamp: subject.Created.UTC().Format(time.RFC3339), Component: &own}
	bom.Components = &components
	// Which module needs which is not in the program; all of them are in it.
	bom.Dependencies = &[]cdx.Dependency{{Ref: own.BOMRef, Dependencies: &refs}}
	return bom
}

// program is the component that the document is about.
func program(info *debug.BuildInfo, digest [sha256.Size]byte, subject Subject) cdx.Component {
	subpath := strings.Trim(strings.TrimPrefix(info.Path, info.Main.Path), "/")
	purl := packageURL(info.Main.Path, "v"+subject.Version, subpath)
	properties := []cdx.Property{{Name: "go:version", Value: info.GoVersion}}
	for _, setting := range info.Settings {
		properties = append(properties, cdx.Property{Name: "go:build:" + setting.Key, Value: setting.Value})
	}
	return cdx.Component{
		BOMRef: purl, Type: cdx.ComponentTypeApplication, Name: subject.Name, Version: subject.Version, PackageURL: purl,
		Licenses:   &cdx.Licenses{{License: &cdx.License{ID: license}}},
		Hashes:     &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(digest[:])}},
		Properties: &properties,
	}
}

// standardLibrary is a component of every Go program; advisories about it name the version of Go.
func standardLibrary(goVersion string) cdx.Component {
	// Experiments follow the version after a space.
	version, _, _ := strings.Cut(strings.TrimPrefix(goVersion, "go"), " ")
	purl := packageURL("std", version, "")
	return cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: "std", Version: version, PackageURL: purl}
}

func library(module *debug.Module) cdx.Component {
	if module.Replace != nil {
		module = module.Replace
	}
	purl := packageURL(module.Path, module.Version, "")
	component := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: purl}
	// What go.sum has as h1: is a SHA-256 over the names and contents of the module's files.
	if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) == sha256.Size {
		component.Hashes = &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
	}
	return component
}

func packageURL(module, version, subpath string) string {
	namespace, name := path.Split(module)
	return packageurl.NewPackageURL(packageurl.TypeGolang, strings.TrimSuffix(namespace, "/"), name, version, nil, subpath).ToString()
}

func fileDigest(file string) ([sha256.Size]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return [sha256.Size]byte{}, err
	}
	return [sha256.Size]byte(hash.Sum(nil)), nil
}
