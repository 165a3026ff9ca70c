package matrix

import (
	"context"
	"fmt"
	"slices"

	"github.com/trussiumhq/trussium-operator/matrix/artifact"
	"github.com/trussiumhq/trussium-operator/matrix/cluster/embedded"
	"github.com/trussiumhq/trussium-operator/matrix/plan"
	"github.com/trussiumhq/trussium-operator/matrix/scenario/trial"
)

// Names of the programs in a bundle.
const (
	programChainsaw = "chainsaw"
	// programControl is followed by the Kubernetes version.
	programControl = "controlplane-"
)

// Builder builds, pulls, or takes from a bundle what the options say.
func (o Options) Builder() artifact.Builder {
	builder := artifact.Builder{Repository: o.Repository, CacheDir: o.CacheDir}
	if o.Published || len(o.Mirrors) > 0 {
		builder.Published = &artifact.Published{Mirrors: o.Mirrors}
	}
	return builder
}

func (p *prepared) builder() artifact.Builder {
	builder := p.options.Builder()
	builder.Operator, builder.Bundle = &p.subject.Operator, p.bundle
	return builder
}

// OpenBundle unpacks the bundle of the options into the cache; nil if they name none.
func (o Options) OpenBundle(ctx context.Context) (*artifact.Bundle, error) {
	if o.Bundle == "" {
		return nil, nil
	}
	if o.Provider != embedded.ProviderName {
		return nil, inputError(fmt.Errorf("a bundle has what the provider %s needs, and nothing for %s", embedded.ProviderName, o.Provider))
	}
	if o.Published || len(o.Mirrors) > 0 {
		return nil, inputError(fmt.Errorf("a bundle has all that is needed: leave --mirror and --published out"))
	}
	builder := o.Builder()
	bundle, err := builder.ReadBundle(ctx, o.Bundle)
	if err != nil {
		return nil, artifactError(err)
	}
	return bundle, nil
}

// bundledClusters start clusters with the programs of a bundle.
func (o Options) bundledClusters(bundle *artifact.Bundle) embedded.Provider {
	clusters := embedded.Provider{Repository: o.tools(), CacheDir: o.CacheDir, Programs: map[string]embedded.Program{}}
	for _, version := range embedded.KubernetesVersions() {
		if program, err := bundle.Program(programControl + version); err == nil {
			clusters.Programs[version] = embedded.Program{Path: program.Path, Key: program.Key}
		}
	}
	return clusters
}

// Chainsaw is that of a bundle.
func Chainsaw(bundle *artifact.Bundle) (artifact.Program, error) {
	return bundle.Program(programChainsaw)
}

// openBundle takes from a bundle what would be built otherwise.
func (p *prepared) openBundle(ctx context.Context, cells []plan.Cell) error {
	bundle, err := p.options.OpenBundle(ctx)
	if err != nil || bundle == nil {
		return err
	}
	if err := embedded.Preflight(ctx, true); err != nil {
		return err
	}
	p.bundle = bundle
	chainsaw, err := Chainsaw(bundle)
	if err != nil {
		return artifactError(err)
	}
	p.chainsaw.bundled = &chainsaw
	for _, c := range cells {
		program, err := bundle.Program(programControl + c.Kubernetes)
		if err != nil {
			return artifactError(err)
		}
		p.controls[c.Kubernetes] = program.Key
	}
	p.provider.clusters = p.options.bundledClusters(bundle)
	return nil
}

// Bundled tells what WriteBundle wrote.
type Bundled struct {
	// Digest is that of the archive: sha256:<hex>.
	Digest string
	// Artifacts are its charts and images, Programs its programs.
	Artifacts []artifact.Artifact
	Programs  []string
}

// WriteBundle writes all that the planned cells need into an archive, and for the scenarios of this repository what those
// need.
func WriteBundle(ctx context.Context, o Options, file string) (Bundled, error) {
	if o.Provider != embedded.ProviderName {
		return Bundled{}, inputError(fmt.Errorf("a bundle can only be made for the provider %s", embedded.ProviderName))
	}
	loaded, cells, err := o.load(ctx)
	if err != nil {
		return Bundled{}, err
	}
	unlock, err := o.lock()
	if err != nil {
		return Bundled{}, err
	}
	defer unlock()
	p, err := newPrepared(o, loaded)
	if err != nil {
		return Bundled{}, err
	}
	cells = slices.DeleteFunc(slices.Clone(cells), func(c plan.Cell) bool { return c.Skip.Code != "" })
	if err := p.build(ctx, cells); err != nil {
		return Bundled{}, err
	}
	if err := p.chainsaw.build(ctx, o); err != nil {
		return Bundled{}, err
	}
	bundle := artifact.Bundle{Checkout: p.checkout, Releases: values(p.releases), Runtimes: values(p.runtimes)}
	builder := p.builder()
	if p.subject.Runtime.Image == artifact.RuntimeRepository {
		images, err := trial.Resolve(ctx, &builder, trial.Usual)
		if err != nil {
			return Bundled{}, artifactError(err)
		}
		bundle.Runtimes = append(bundle.Runtimes, images.Artifacts()...)
	}
	if bundle.Programs, err = p.programs(ctx, cells); err != nil {
		return Bundled{}, err
	}
	bundled := Bundled{}
	for _, release := range append(slices.Clone(bundle.Releases), bundle.Checkout) {
		bundled.Artifacts = append(bundled.Artifacts, release.Chart, release.Image)
	}
	bundled.Artifacts = append(bundled.Artifacts, bundle.Runtimes...)
	for _, program := range bundle.Programs {
		bundled.Programs = append(bundled.Programs, program.Name)
	}
	if bundled.Digest, err = builder.WriteBundle(ctx, file, bundle); err != nil {
		return Bundled{}, artifactError(err)
	}
	return bundled, nil
}

// programs are those that the cells need.
func (p *prepared) programs(ctx context.Context, cells []plan.Cell) ([]artifact.Program, error) {
	key, err := p.chainsaw.key(ctx)
	if err != nil {
		return nil, err
	}
	programs := []artifact.Program{{Name: programChainsaw, Key: key, Path: p.chainsaw.path}}
	for _, c := range cells {
		name := programControl + c.Kubernetes
		if slices.ContainsFunc(programs, func(program artifact.Program) bool { return program.Name == name }) {
			continue
		}
		path, key, err := embedded.Build(ctx, p.options.tools(), p.options.CacheDir, c.Kubernetes, nil)
		if err != nil {
			return nil, err
		}
		programs = append(programs, artifact.Program{Name: name, Key: key, Path: path})
	}
	return programs, nil
}
