// Package crdschema treats objects as the API server treats those of a
// CustomResourceDefinition's version, with the API server's own code but without a server.
package crdschema

import (
	"context"
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// Schema is the schema of one version. Objects are JSON as the API server decodes it: whole
// numbers are int64.
type Schema struct {
	structural *structuralschema.Structural
	validator  validation.SchemaValidator
	rules      *cel.Validator
}

// New reads a schema. An error says what is wrong with it.
func New(root *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(root, internal, nil); err != nil {
		return nil, fmt.Errorf("convert the schema: %w", err)
	}
	structural, err := structuralschema.NewStructural(internal)
	if err != nil {
		return nil, fmt.Errorf("the schema is not structural: %w", err)
	}
	validator, _, err := validation.NewSchemaValidator(internal)
	if err != nil {
		return nil, fmt.Errorf("read the schema: %w", err)
	}
	return &Schema{
		structural: structural, validator: validator,
		rules: cel.NewValidator(structural, true, celconfig.PerCallLimit),
	}, nil
}

// Prune removes the fields that the schema does not know and returns their paths, sorted.
func (s *Schema) Prune(object map[string]any) []string {
	return pruning.PruneWithOptions(object, s.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

// Default sets what is absent and has a default.
func (s *Schema) Default(object map[string]any) {
	defaulting.Default(object, s.structural)
}

// Validate says why the object, with its defaults, may not be created; nil if it may.
func (s *Schema) Validate(ctx context.Context, object map[string]any) error {
	refusals := validation.ValidateCustomResource(nil, object, s.validator)
	refusals = append(refusals, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(refusals) == 0 {
		fromRules, _ := s.rules.Validate(ctx, nil, s.structural, object, nil, celconfig.RuntimeCELCostBudget)
		refusals = append(refusals, fromRules...)
	}
	if len(refusals) == 0 {
		return nil
	}
	return refusals.ToAggregate()
}

// ValidateUpdate says why the object may not be changed from what it was; nil if it may. What
// the schema refuses in a part that did not change is let pass where Kubernetes, from 1.30 on,
// lets it pass (ratcheting).
func (s *Schema) ValidateUpdate(ctx context.Context, object, was map[string]any) error {
	correlated := common.NewCorrelatedObject(object, was, &model.Structural{Structural: s.structural})
	refusals := validation.ValidateCustomResourceUpdate(nil, object, was, s.validator, validation.WithRatcheting(correlated))
	refusals = append(refusals, listtype.ValidateListSetsAndMaps(nil, s.structural, object)...)
	if len(refusals) == 0 {
		fromRules, _ := s.rules.Validate(ctx, nil, s.structural, object, was, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
		refusals = append(refusals, fromRules...)
	}
	if len(refusals) == 0 {
		return nil
	}
	return refusals.ToAggregate()
}
