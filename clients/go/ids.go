package holdfast

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
)

const (
	alphabet = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
	lowEnd   = 1 << 41 // the highest bit of the lower half marks ids of another kind
)

// checkName returns an error unless the text can be the name of a queue, a type
// or a job.
func checkName(name, what string) error {
	good := len(name) >= 1 && len(name) <= 128
	for i := 0; good && i < len(name); i++ {
		c := name[i]
		good = c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._:-", c) >= 0
	}
	if !good {
		return fmt.Errorf("expected as %s 1 to 128 characters of A-Z a-z 0-9 . _ : -, found %.140q", what, name)
	}
	return nil
}

// appendHalf writes the lower 42 bits as 7 characters, whose order is that of
// the numbers.
func appendHalf(to []byte, value uint64) []byte {
	for shift := 36; shift >= 0; shift -= 6 {
		to = append(to, alphabet[value>>shift&63])
	}
	return to
}

func idOf(ms, low uint64) string {
	return string(appendHalf(appendHalf(make([]byte, 0, 14), ms), low))
}

// An idMaker makes ids that rise: Unix ms, then a number that begins at random
// in each ms and counts on.
type idMaker struct {
	mutex   sync.Mutex
	ms, low uint64
}

// next returns n ids.
func (m *idMaker) next(n int) []string {
	now := uint64(time.Now().UnixMilli())
	m.mutex.Lock()
	if now > m.ms {
		m.begin(now)
	} else if m.low+uint64(n)+1 >= lowEnd {
		m.begin(m.ms + 1)
	}
	if m.low+uint64(n)+1 >= lowEnd {
		m.low >>= 1
	}
	ms, first := m.ms, m.low+1
	m.low += uint64(n)
	m.mutex.Unlock()
	ids := make([]string, n)
	for i := range ids {
		ids[i] = idOf(ms, first+uint64(i))
	}
	return ids
}

func (m *idMaker) begin(ms uint64) {
	var random [8]byte
	rand.Read(random[:])
	m.ms, m.low = ms, binary.BigEndian.Uint64(random[:])&(lowEnd-1)
}

// randomName returns a name that no other process has.
func randomName() string {
	var random [10]byte
	rand.Read(random[:])
	return "go" + hex.EncodeToString(random[:])
}

// shardOf returns the place of a text among n shards: CRC-16 as Redis Cluster
// reckons it, modulo n.
func shardOf(text string, n int) int { return int(crc16(text)) % n }

func crc16(text string) uint16 {
	var crc uint16
	for i := range len(text) {
		crc ^= uint16(text[i]) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}
