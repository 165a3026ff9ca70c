package kind

import (
	"fmt"
	"strings"

	"sigs.k8s.io/kind/pkg/log"
)

// progressLog hands what Kind's library tells its users to a progress function.
type progressLog struct{ progress func(string) }

var _ log.Logger = progressLog{}

func (l progressLog) Warn(message string)            { l.tell(message) }
func (l progressLog) Warnf(format string, a ...any)  { l.tell(fmt.Sprintf(format, a...)) }
func (l progressLog) Error(message string)           { l.tell(message) }
func (l progressLog) Errorf(format string, a ...any) { l.tell(fmt.Sprintf(format, a...)) }

// V returns what is for users, and drops what is for debugging.
func (l progressLog) V(level log.Level) log.InfoLogger {
	if level > 0 {
		return log.NoopInfoLogger{}
	}
	return l
}

func (l progressLog) Info(message string)           { l.tell(message) }
func (l progressLog) Infof(format string, a ...any) { l.tell(fmt.Sprintf(format, a...)) }
func (l progressLog) Enabled() bool                 { return true }

// tell leaves out Kind's warnings about the variable that this package sets itself.
func (l progressLog) tell(text string) {
	text = strings.TrimSpace(text)
	if l.progress == nil || text == "" || strings.HasPrefix(text, "WARNING: Overriding") || strings.HasPrefix(text, "WARNING: Here be dragons") {
		return
	}
	l.progress(text)
}
