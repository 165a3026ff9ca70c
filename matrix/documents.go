package matrix

import (
	"context"
	"path/filepath"

	"github.com/trussiumhq/trussium-operator/matrix/compat"
	"github.com/trussiumhq/trussium-operator/matrix/evidence"
	"github.com/trussiumhq/trussium-operator/matrix/report"
)

// ReportInput gathers what reports are made from: the compatibility file, its plan for every provider, and the evidence
// in the checkout. Of the options it takes the repository, the tools, the file and the cache.
func ReportInput(ctx context.Context, o Options) (report.Input, error) {
	o = Options{Repository: o.Repository, CacheDir: o.CacheDir, Tools: o.Tools, File: o.File}
	in := report.Input{EvidenceDir: EvidenceDir, MatrixFile: ReportFile}
	for _, o.Provider = range Providers {
		planned, err := Load(ctx, o)
		if err != nil {
			return report.Input{}, err
		}
		in.Planned = append(in.Planned, planned...)
	}
	var err error
	if in.File, err = compat.Load(o.File); err != nil {
		return report.Input{}, inputError(err)
	}
	if in.Documents, err = (evidence.Store{Dir: filepath.Join(o.Repository, EvidenceDir)}).All(); err != nil {
		return report.Input{}, inputError(err)
	}
	return in, nil
}

// WriteDocuments writes every generated document of the checkout that is not up to date, and returns the paths of those
// that it wrote, relative to the root.
func WriteDocuments(ctx context.Context, o Options) ([]string, error) {
	in, err := ReportInput(ctx, o)
	if err != nil {
		return nil, err
	}
	documents, err := report.Documents(o.Repository, in)
	if err != nil {
		return nil, inputError(err)
	}
	return report.Write(o.Repository, documents)
}
