package pipe

import (
	"encoding/json"
	"strconv"
	"time"
	"unicode/utf8"
)

// What the worker keeps at most.
const (
	MaxResult     = 64 << 10
	MaxCheckpoint = 4 << 10
	MaxError      = 4 << 10
	MaxNote       = 256
	maxTrace      = 16 << 10
	maxLog        = 16 << 10
)

// A Kind is what a verdict does with its job.
type Kind string

// The kinds of verdicts.
const (
	Done    Kind = "done"
	Retry   Kind = "retry"
	Dead    Kind = "dead"
	Cancel  Kind = "cancel"
	Release Kind = "release"
)

// A Verdict ends a run.
type Verdict struct {
	Kind  Kind
	Body  []byte         // the result; of a failure the stack. nil: none
	JSON  bool           // the result is JSON
	Error string         // one line for people
	In    *time.Duration // when the job runs again; nil: as usual
}

// append writes the verdict of a run as a frame.
func (v *Verdict) append(to []byte, run int64) []byte {
	to = head(to, string(v.Kind), run)
	body := v.Body
	if v.Kind != Done {
		body = body[max(0, len(body)-maxTrace):]
	}
	if v.JSON && v.Kind == Done {
		to = append(to, `,"json":true`...)
	}
	if v.In != nil {
		to = append(to, `,"in":`...)
		to = strconv.AppendInt(to, max(0, v.In.Milliseconds()), 10)
	}
	if v.Error != "" {
		to = append(to, `,"error":`...)
		to = quote(to, Cut(v.Error, MaxError))
	}
	return tail(to, body)
}

func head(to []byte, kind string, run int64) []byte {
	to = append(to, `{"t":"`...)
	to = append(to, kind...)
	to = append(to, `","run":`...)
	return strconv.AppendInt(to, run, 10)
}

func tail(to, body []byte) []byte {
	if body != nil {
		to = append(to, `,"n":`...)
		to = strconv.AppendInt(to, int64(len(body)), 10)
	}
	to = append(to, '}', '\n')
	return append(to, body...)
}

// quote writes a text as JSON. Bytes that are not UTF-8 become U+FFFD.
func quote(to []byte, text string) []byte {
	quoted, err := json.Marshal(text)
	if err != nil { // a string can always be written
		panic(err)
	}
	return append(to, quoted...)
}

// Cut returns the beginning of a text, at most limit bytes, that ends at a
// character.
func Cut(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}
