package static

import (
	"context"

	"github.com/trussiumhq/trussium-operator/matrix/check"
)

// ReleaseRecordSize is the check that Helm can store the release.
var ReleaseRecordSize = check.Check{
	ID:    "release-record-size",
	Claim: "Helm's record of the upgraded release, with all of the chart's values set, stays under 800 KiB; a Secret holds 1 MiB.",
}

// recordLimit is in bytes.
const recordLimit = 800 << 10

// JudgeReleaseRecord judges ReleaseRecordSize. A user who sets every value makes the record
// largest: it holds them beside the chart's own.
func JudgeReleaseRecord(ctx context.Context, e Edge) (check.Result, error) {
	rendered, err := e.renderUpgrade(ctx, e.Values, e.Source.Chart.Values())
	if err != nil {
		return refused(err)
	}
	return judgeRecord(rendered.after.RecordBytes), nil
}

func judgeRecord(size int) check.Result {
	var r check.Result
	const kibibyte = 1 << 10
	r.See("the record has %d KiB, of %d KiB", size/kibibyte, recordLimit/kibibyte)
	if size >= recordLimit {
		r.Fail("Helm's record of the release has %d bytes, less than %d are wanted: leave what is not needed out of the chart (.helmignore)", size, recordLimit)
	}
	return r
}
