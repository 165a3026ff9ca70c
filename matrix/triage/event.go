package triage

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// maxEvent bounds the size of an event, in bytes. GitHub's own are below 64 KiB.
const maxEvent = 1 << 20

// LoadEvent reads the event that started a workflow from a file, and returns the release that it
// names: client_payload.version of a repository_dispatch event, or release.tag_name of a release
// event. Nothing else in it is believed. An error begins with the position in the file.
func LoadEvent(path string) (version string, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("read the event: %w", err)
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxEvent+1))
	if err != nil {
		return "", fmt.Errorf("read the event: %w", err)
	}
	wrong := func(offset int64, format string, args ...any) (string, error) {
		before := content[:min(int(offset), len(content))]
		line := bytes.Count(before, []byte("\n")) + 1
		column := len([]rune(string(before[bytes.LastIndexByte(before, '\n')+1:]))) + 1
		return "", fmt.Errorf("%s:%d:%d: %s", path, line, column, fmt.Sprintf(format, args...))
	}
	if len(content) > maxEvent {
		return wrong(0, "the file is larger than %d MiB: name the file of one event", maxEvent>>20)
	}
	var event struct {
		ClientPayload *struct {
			Version any `json:"version"`
		} `json:"client_payload"`
		Release *struct {
			TagName any `json:"tag_name"`
		} `json:"release"`
	}
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch err := json.Unmarshal(content, &event); {
	case errors.As(err, &syntax):
		return wrong(max(syntax.Offset-1, 0), "the event is not valid JSON: %s", strings.TrimPrefix(err.Error(), "json: "))
	case errors.As(err, &kind):
		return wrong(max(kind.Offset-1, 0), "%s is a JSON %s, not an object", orEvent(kind.Field), kind.Value)
	case err != nil:
		return wrong(0, "the event can't be read: %v", err)
	}
	var value any
	var keys []string
	switch {
	case event.ClientPayload != nil:
		value, keys = event.ClientPayload.Version, []string{"client_payload", "version"}
	case event.Release != nil:
		value, keys = event.Release.TagName, []string{"release", "tag_name"}
	default:
		return wrong(0, "the event names no release: it has neither client_payload.version, as a repository_dispatch event, nor release.tag_name")
	}
	name := strings.Join(keys, ".")
	version, ok := value.(string)
	switch _, valid := parseVersion(version); {
	case value == nil:
		return wrong(offsetOf(content, keys[:1]), "%s is missing: give it the name of the release, as in v1.30.0", name)
	case !ok:
		return wrong(offsetOf(content, keys), "%s is not text: give it the name of the release, as in \"v1.30.0\"", name)
	case !valid:
		return wrong(offsetOf(content, keys), "%s is %q, which is not the name of a release: write vX.Y.Z, as in v1.30.0", name, line(version, maxVersion))
	}
	return version, nil
}

func orEvent(field string) string {
	if field == "" {
		return "the event"
	}
	return field
}

// offsetOf is where the value begins that is reached by these keys in valid JSON; 0 if there is
// none. Of keys that are there twice the last one counts, as it does for Unmarshal.
func offsetOf(content []byte, keys []string) int64 {
	decoder := json.NewDecoder(bytes.NewReader(content))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return 0
	}
	found := int64(0)
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return found
		}
		start := decoder.InputOffset()
		start += int64(len(content[start:]) - len(bytes.TrimLeft(content[start:], ": \t\r\n")))
		var value json.RawMessage
		if decoder.Decode(&value) != nil {
			return found
		}
		switch {
		case key != keys[0]:
		case len(keys) == 1:
			found = start
		default:
			found = start + offsetOf(value, keys[1:])
		}
	}
	return found
}
