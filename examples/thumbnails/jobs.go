package main

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	_ "image/gif"
	_ "image/jpeg"
	"image/png"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"holdfast-queue/holdfast"
)

const (
	sideMax  = 200      // of a small picture, in pixels
	areaMax  = 50000000 // of an uploaded one
	keepDays = 7
)

// Shrink makes a small picture of an uploaded one.
type Shrink struct {
	Picture string `json:"picture"`
}

// Kind is the type of the job.
func (Shrink) Kind() string { return "picture.shrink" }

// Options are known to the pages and to the worker.
func (Shrink) Options() []holdfast.TypeOption {
	return []holdfast.TypeOption{holdfast.Queue("pictures"), holdfast.Keep(24 * time.Hour)}
}

// Size is the result of Shrink.
type Size struct {
	Width  int `json:"width"`
	Height int `json:"height"`
}

// Tidy removes old pictures.
type Tidy struct{}

// Kind is the type of the job.
func (Tidy) Kind() string { return "pictures.tidy" }

// Options put it into the same queue.
func (Tidy) Options() []holdfast.TypeOption { return []holdfast.TypeOption{holdfast.Queue("pictures")} }

// Pictures is the folder with the uploaded pictures, and small ones beside them.
type Pictures string

func (p Pictures) path(name string) string { return filepath.Join(string(p), name) }

func handlers(pictures Pictures) *holdfast.Mux {
	mux := holdfast.NewMux()
	holdfast.HandleResult(mux, pictures.shrink, holdfast.Timeout(30*time.Second), holdfast.MaxAttempts(3),
		holdfast.DeadOn(image.ErrFormat, fs.ErrNotExist))
	holdfast.Handle(mux, pictures.tidy)
	mux.Cron("0 3 * * *", Tidy{})
	return mux
}

// put writes a file under another name first: a job may run twice, and nobody reads
// half a picture.
func (p Pictures) put(name string, write func(io.Writer) error) error {
	out, err := os.CreateTemp(string(p), "making-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	if err := errors.Join(write(out), out.Close()); err != nil {
		return err
	}
	return os.Rename(out.Name(), p.path(name))
}

func (p Pictures) shrink(ctx context.Context, job *holdfast.Job[Shrink]) (Size, error) {
	in, err := os.Open(p.path(job.Args.Picture))
	if err != nil {
		return Size{}, err
	}
	defer in.Close()
	config, _, err := image.DecodeConfig(in)
	if err != nil {
		return Size{}, err
	}
	if config.Width*config.Height > areaMax {
		return Size{}, holdfast.Dead(fmt.Errorf("expected at most %d pixels, found %d x %d", areaMax, config.Width, config.Height))
	}
	if _, err := in.Seek(0, 0); err != nil {
		return Size{}, err
	}
	picture, _, err := image.Decode(in)
	if err != nil {
		return Size{}, holdfast.Dead(err)
	}
	if err := job.Progress(50, "decoded"); err != nil {
		return Size{}, err
	}
	small, err := shrunk(ctx, picture)
	if err != nil {
		return Size{}, err
	}
	err = p.put(job.Args.Picture+".small", func(out io.Writer) error { return png.Encode(out, small) })
	return Size{small.Bounds().Dx(), small.Bounds().Dy()}, err
}

// shrunk takes the mean of the pixels that become one. It looks at the context, so
// a time-out ends it.
func shrunk(ctx context.Context, picture image.Image) (image.Image, error) {
	from := picture.Bounds()
	step := max(1, (max(from.Dx(), from.Dy())+sideMax-1)/sideMax)
	small := image.NewRGBA64(image.Rect(0, 0, max(1, from.Dx()/step), max(1, from.Dy()/step)))
	for y := range small.Rect.Max.Y {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for x := range small.Rect.Max.X {
			area := image.Rect(x*step, y*step, (x+1)*step, (y+1)*step).Add(from.Min).Intersect(from)
			small.SetRGBA64(x, y, mean(picture, area))
		}
	}
	return small, nil
}

func mean(picture image.Image, area image.Rectangle) color.RGBA64 {
	var sum [4]uint64
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			r, g, b, a := picture.At(x, y).RGBA()
			sum[0], sum[1], sum[2], sum[3] = sum[0]+uint64(r), sum[1]+uint64(g), sum[2]+uint64(b), sum[3]+uint64(a)
		}
	}
	n := uint64(max(1, area.Dx()*area.Dy()))
	return color.RGBA64{uint16(sum[0] / n), uint16(sum[1] / n), uint16(sum[2] / n), uint16(sum[3] / n)}
}

func (p Pictures) tidy(ctx context.Context, job *holdfast.Job[Tidy]) error {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return err
	}
	removed := 0
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && time.Since(info.ModTime()) > keepDays*24*time.Hour {
			if err := os.Remove(p.path(entry.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			removed++
		}
	}
	slog.InfoContext(ctx, "tidied", "removed", removed)
	return nil
}
