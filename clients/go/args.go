package holdfast

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// Args are the arguments of a job: a struct whose exported fields have json
// tags. Its JSON is the payload, one object with the arguments by name.
type Args interface {
	// Kind is the type of the job, such as "email.send". It is called on zero
	// values, too.
	Kind() string
}

// ArgsWithOptions are arguments that bring options of their job. Enqueue and
// Handle both read them, so that a queue or a time for keeping results stands
// in one place.
type ArgsWithOptions interface {
	Args
	Options() []TypeOption
}

var (
	marshaler     = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	checked       sync.Map // reflect.Type: error, or nil
)

// checkArgs returns an error if the type cannot be the arguments of a job. A
// field without a tag would be written as "To", and a handler in another
// language would look for "to".
func checkArgs(t reflect.Type) error {
	if known, ok := checked.Load(t); ok {
		err, _ := known.(error)
		return err
	}
	err := checkObject(t)
	checked.Store(t, err)
	return err
}

func checkObject(t reflect.Type) error {
	of := t
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if of.Kind() == reflect.Map || writesItself(of) {
		return nil
	}
	if of.Kind() != reflect.Struct {
		return fmt.Errorf("expected a struct as the arguments of a job, found %v", t)
	}
	return checkFields(of, map[reflect.Type]bool{})
}

func writesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(marshaler) || p.Implements(textMarshaler)
}

func checkFields(t reflect.Type, seen map[reflect.Type]bool) error {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return checkFields(t.Elem(), seen)
	case reflect.Struct:
	default:
		return nil
	}
	if seen[t] || writesItself(t) {
		return nil
	}
	seen[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		if tag == "-" || (!field.IsExported() && !field.Anonymous) {
			continue
		}
		if name, _, _ := strings.Cut(tag, ","); name == "" && !isInlined(field) {
			return fmt.Errorf("expected a json tag with a name at the exported field %v.%s, such as `json:%q`",
				t, field.Name, snake(field.Name))
		}
		if err := checkFields(field.Type, seen); err != nil {
			return err
		}
	}
	return nil
}

// isInlined reports whether the fields of an embedded struct count as those of
// the struct around it.
func isInlined(field reflect.StructField) bool {
	of := field.Type
	if of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return field.Anonymous && of.Kind() == reflect.Struct
}

// snake suggests a name: OrderID becomes order_id.
func snake(name string) string {
	var out []byte
	upper := func(i int) bool { return i < len(name) && name[i] >= 'A' && name[i] <= 'Z' }
	for i := range len(name) {
		c := name[i]
		if upper(i) {
			if i > 0 && (!upper(i-1) || (i+1 < len(name) && !upper(i+1))) {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return string(out)
}

// toJSON writes a value without the escapes that only HTML needs.
func toJSON(value any) ([]byte, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n")), nil
}

// payloadOf returns the kind and the payload of arguments.
func payloadOf(args Args) (kind string, payload []byte, err error) {
	value := reflect.ValueOf(args)
	if args == nil || (value.Kind() == reflect.Pointer && value.IsNil()) {
		return "", nil, errors.New("expected the arguments of a job, found nil")
	}
	kind = args.Kind()
	if err := checkName(kind, "Kind()"); err != nil {
		return kind, nil, err
	}
	if err := checkArgs(value.Type()); err != nil {
		return kind, nil, err
	}
	payload, err = toJSON(args)
	if err == nil && (len(payload) == 0 || payload[0] != '{') {
		err = fmt.Errorf("expected the arguments of a job to be one JSON object, found %.20q", payload)
	}
	return kind, payload, err
}

// A misfitError is about a payload that does not fit the handler. Another
// attempt would not help.
type misfitError struct{ err error }

func (e *misfitError) Error() string {
	var wrong *json.UnmarshalTypeError
	switch {
	case errors.As(e.err, &wrong) && wrong.Field != "":
		return fmt.Sprintf("payload: expected %v as '%s', found %s", wrong.Type, wrong.Field, wrong.Value)
	case errors.As(e.err, &wrong):
		return fmt.Sprintf("payload: expected an object, found %s", wrong.Value)
	}
	return "payload: " + e.err.Error()
}

func (e *misfitError) Unwrap() error { return e.err }

// argsOf reads a payload. An empty one, of a job without arguments, is {}.
func argsOf(payload []byte, into any) error {
	if len(payload) == 0 {
		return nil
	}
	if err := json.Unmarshal(payload, into); err != nil {
		return &misfitError{err}
	}
	return nil
}
