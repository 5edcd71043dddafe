package holdfast

import (
	"context"
	"log/slog"
)

// LogHandler adds job_id and job_type to the records of slog that are made with
// the context of a run.
func LogHandler(next slog.Handler) slog.Handler { return logHandler{next} }

type logHandler struct{ slog.Handler }

func (h logHandler) Handle(ctx context.Context, record slog.Record) error {
	if run := CurrentRun(ctx); run != nil {
		record = record.Clone()
		record.AddAttrs(slog.String("job_id", run.ID), slog.String("job_type", run.Type))
	}
	return h.Handler.Handle(ctx, record)
}

func (h logHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return logHandler{h.Handler.WithAttrs(attrs)}
}

func (h logHandler) WithGroup(name string) slog.Handler {
	return logHandler{h.Handler.WithGroup(name)}
}
