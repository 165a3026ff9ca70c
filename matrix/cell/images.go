package cell

import "slices"

// images are the references that the pods of the cell name; inside is that of the matrix's own, if any.
func (s Spec) images(inside string) []string {
	images := []string{s.From.Image.Ref, s.To.Image.Ref, s.Runtime.Baseline.Ref, s.Runtime.Target.Ref, inside}
	for _, release := range s.Through {
		images = append(images, release.Image.Ref)
	}
	images = slices.DeleteFunc(images, func(ref string) bool { return ref == "" })
	slices.Sort(images)
	return slices.Compact(images)
}
