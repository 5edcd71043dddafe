package command

import (
	_ "embed"

	"holdfast-queue/holdfast/internal/embedded"
)

//go:embed holdfast
var holdfast []byte

func init() { embedded.Set(holdfast) }
