package file

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leasehold/leasehold/store"
)

// BenchmarkSync is the file system's own rate, beside which the rest is to be read.
func BenchmarkSync(b *testing.B) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		if err := appendSync(f); err != nil {
			b.Fatal(err)
		}
	}
	perSecond(b, b.N)
}

// appendSync appends a page and syncs it.
func appendSync(f *os.File) error {
	_, err := f.Write(make([]byte, 4096))
	return errors.Join(err, f.Sync())
}

func perSecond(b *testing.B, ops int) {
	b.ReportMetric(float64(ops)/b.Elapsed().Seconds(), "ops/s")
}

// BenchmarkPut is renewals, each writer of a key of its own.
func BenchmarkPut(b *testing.B) {
	for _, writers := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			s := testOpen(b, testPath(b))
			var group sync.WaitGroup
			each := b.N/writers + 1
			b.ResetTimer()
			for i := range writers {
				group.Go(func() {
					rec := full(strconv.Itoa(i))
					for range each {
						var err error
						if rec, err = s.Put(b.Context(), rec); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			group.Wait()
			perSecond(b, writers*each)
		})
	}
}

// full is a record as a lease has it after a while.
func full(key string) store.Record {
	rec := held(key, 1_700_000_000_000)
	rec.Acquired = time.Now()
	rec.Nonce = "Z6QXJ2VLRM4N"
	rec.Info = map[string]string{"host": "worker-17.example", "pid": "12345", "version": "1.2.3"}
	for i := range 4 {
		rec.Past = append(rec.Past, store.Term{Owner: "worker-16.example/4711/ABCDEFGH", Token: rec.Token - 1 - 1, From: rec.Acquired, Until: rec.Acquired.Add(time.Duration(i)), Why: "released"})
	}
	return rec
}

func BenchmarkGet(b *testing.B) {
	s := testOpen(b, testPath(b))
	mustPut(b, s, full("k"))
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := s.Get(b.Context(), "k"); err != nil {
				b.Fatal(err)
			}
		}
	})
	perSecond(b, b.N)
}

func BenchmarkOpenClose(b *testing.B) {
	path := testPath(b)
	for b.Loop() {
		s, err := Open(b.Context(), path, Options{})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}
}

// echoHelper answers every change of the key that isn't its own by one of its own.
func echoHelper() error {
	ctx := untilTold()
	s, err := Open(context.Background(), args().Path, Options{})
	if err != nil {
		return err
	}
	defer s.Close()
	if args().Bare {
		withoutNet(s)
	}
	rec, err := store.Load(ctx, s, args().Key)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for err == nil {
		if rec, err = s.Wait(ctx, rec.Key, rec.Version); err == nil {
			rec.Token++
			rec, err = s.Put(context.Background(), rec)
		}
	}
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// BenchmarkHandover is how long it takes from before a write to the moment when a waiter in another process has seen it:
// half of a write, that process's answer, and the sight of it.
func BenchmarkHandover(b *testing.B) {
	path := testPath(b)
	s := testOpen(b, path)
	rec := mustPut(b, s, held("k", 1))
	p := start(b, "echo", helperArgs{Path: path, Key: "k"})
	p.line(b)
	var ns []int64
	for b.Loop() {
		start := time.Now()
		rec.Token++
		mine, err := s.Put(b.Context(), rec)
		if err == nil {
			rec, err = s.Wait(b.Context(), "k", mine.Version)
		}
		if err != nil {
			b.Fatal(err)
		}
		ns = append(ns, int64(time.Since(start))/2)
	}
	report(b, "", ns)
	p.stop(b)
}
