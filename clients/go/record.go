package holdfast

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

const headersMax = 4096

// A header is a text beside the arguments of a job.
type header struct{ name, value string }

// fields are what a record says of a job beside its type: docs/keys.md, "The
// record". Durations are in ms, and 0 or "" is left out.
type fields struct {
	maxAttempts, timeout, keep int64
	extras
	headers []header
}

// extras are the fields that need the script enqueue_with.
type extras struct {
	unique                      string
	priority                    string
	startWithin                 int64
	expired, onDead             string
	awaited, replaceDead        int64
	uniqueUntil, onConflict     string
	uniqueFor                   int64
	debounce, maxWait, throttle int64
}

// optional reports whether the record needs the script enqueue_with.
func (f *fields) optional() bool { return f.extras != extras{} }

// record writes a job as Redis keeps it: a line of JSON, a newline, the payload.
// created 0: the id tells when the job was made. The order of the fields is that
// of all languages.
func (f *fields) record(kind string, created int64, payload []byte) []byte {
	to := make([]byte, 0, 128+len(payload))
	to = append(to, '{')
	if f.unique != "" {
		to = append(appendText(append(to, `"unique":`...), f.unique), ',')
	}
	to = append(append(append(to, `"type":"`...), kind...), '"')
	number := func(name string, value int64) {
		if value != 0 {
			to = append(append(append(to, `,"`...), name...), `":`...)
			to = strconv.AppendInt(to, value, 10)
		}
	}
	text := func(name, value string) {
		if value != "" {
			to = append(append(append(to, `,"`...), name...), `":`...)
			to = appendText(to, value)
		}
	}
	number("created", created)
	number("max_attempts", f.maxAttempts)
	number("timeout", f.timeout)
	number("keep", f.keep)
	text("priority", f.priority)
	number("start_within", f.startWithin)
	text("expired", f.expired)
	text("on_dead", f.onDead)
	number("awaited", f.awaited)
	number("replace_dead", f.replaceDead)
	text("unique_until", f.uniqueUntil)
	text("on_conflict", f.onConflict)
	number("unique_for", f.uniqueFor)
	number("debounce", f.debounce)
	number("max_wait", f.maxWait)
	number("throttle", f.throttle)
	if len(f.headers) > 0 {
		to = appendHeaders(append(to, `,"headers":`...), f.headers)
	}
	to = append(to, '}', '\n')
	return append(to, payload...)
}

func appendHeaders(to []byte, headers []header) []byte {
	to = append(to, '{')
	for i, h := range headers {
		if i > 0 {
			to = append(to, ',')
		}
		to = appendText(append(appendText(to, h.name), ':'), h.value)
	}
	return append(to, '}')
}

// appendText writes a text between quotes of JSON; only what must be escaped is.
func appendText(to []byte, text string) []byte {
	const digits = "0123456789abcdef"
	to = append(to, '"')
	for i := range len(text) {
		c := text[i]
		if c < ' ' || c == '"' || c == '\\' {
			to = append(to, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		} else {
			to = append(to, c)
		}
	}
	return append(to, '"')
}

func checkHeaders(headers []header) error {
	for _, h := range headers {
		if !utf8.ValidString(h.name) || !utf8.ValidString(h.value) {
			return fmt.Errorf("headers: expected UTF-8, found %q: %q", h.name, h.value)
		}
	}
	if size := len(appendHeaders(nil, headers)); size > headersMax {
		return fmt.Errorf("headers: expected at most %d bytes of JSON, found %d", headersMax, size)
	}
	return nil
}

// setHeader replaces a header, or adds it.
func setHeader(headers []header, name, value string) []header {
	for i := range headers {
		if headers[i].name == name {
			headers[i].value = value
			return headers
		}
	}
	return append(headers, header{name, value})
}
