package pipe

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"unicode/utf8"
)

var errObject = errors.New("expected a JSON object on one line")

// members calls visit for each member of the JSON object in line, in order. It
// checks only as much as it needs to find them: the other side writes JSON.
//
// encoding/json does not fit here: it takes "RUN" for "run", refuses 7.0 where
// a whole number is expected, and keeps an earlier value when null follows.
func members(line []byte, visit func(name, value []byte) error) error {
	at := space(line, 0)
	if at >= len(line) || line[at] != '{' {
		return errObject
	}
	at = space(line, at+1)
	if at < len(line) && line[at] == '}' {
		return closed(line, at+1)
	}
	for {
		name, next, err := text(line, at)
		if err != nil {
			return err
		}
		at = space(line, next)
		if at >= len(line) || line[at] != ':' {
			return errObject
		}
		at = space(line, at+1)
		end := skip(line, at)
		if end <= at {
			return errObject
		}
		if err := visit(name, line[at:end]); err != nil {
			return err
		}
		at = space(line, end)
		if at >= len(line) {
			return errObject
		}
		switch line[at] {
		case '}':
			return closed(line, at+1)
		case ',':
			at = space(line, at+1)
		default:
			return errObject
		}
	}
}

func closed(line []byte, at int) error {
	if space(line, at) != len(line) {
		return errObject
	}
	return nil
}

func space(line []byte, at int) int {
	for at < len(line) && (line[at] == ' ' || line[at] == '\t' || line[at] == '\r' || line[at] == '\n') {
		at++
	}
	return at
}

// text reads the string that begins at. Without escapes it is a part of line.
func text(line []byte, at int) (value []byte, next int, err error) {
	end := quoted(line, at)
	if end < 0 {
		return nil, 0, errObject
	}
	inside := line[at+1 : end-1]
	if bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return inside, end, nil
	}
	var whole string
	if err := json.Unmarshal(line[at:end], &whole); err != nil {
		return nil, 0, errObject
	}
	return []byte(whole), end, nil
}

// quoted returns the end of the string that begins at, or -1.
func quoted(line []byte, at int) int {
	if at >= len(line) || line[at] != '"' {
		return -1
	}
	for at++; at < len(line); at++ {
		switch line[at] {
		case '"':
			return at + 1
		case '\\':
			at++
		}
	}
	return -1
}

// skip returns the end of the value that begins at, or -1.
func skip(line []byte, at int) int {
	if at >= len(line) {
		return -1
	}
	switch line[at] {
	case '"':
		return quoted(line, at)
	case '{', '[':
		return nested(line, at)
	}
	for at < len(line) && line[at] != ',' && line[at] != '}' && line[at] != ']' && line[at] > ' ' {
		at++
	}
	return at
}

func nested(line []byte, at int) int {
	for depth := 0; at < len(line); at++ {
		switch line[at] {
		case '"':
			end := quoted(line, at)
			if end < 0 {
				return -1
			}
			at = end - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return at + 1
			}
		}
	}
	return -1
}

// whole reads a number from 0 to 2^53 that has no fraction: 7, 7.0 and 70e-1.
func whole(value []byte) (int64, error) {
	number, err := strconv.ParseInt(string(value), 10, 64)
	if err != nil {
		fraction, err := strconv.ParseFloat(string(value), 64)
		if err != nil || fraction != math.Trunc(fraction) || math.Abs(fraction) > 1<<53 {
			return 0, errNumber
		}
		number = int64(fraction)
	}
	if number < 0 || number > 1<<53 {
		return 0, errNumber
	}
	return number, nil
}

var errNumber = errors.New("expected a whole number from 0 to 2^53")
