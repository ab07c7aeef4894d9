package open

import (
	"context"
	"fmt"

	"github.com/leasehold/leasehold/internal/fileurl"
	"github.com/leasehold/leasehold/store"
	"github.com/leasehold/leasehold/store/file"
)

// FileGroup returns the path of a store in a file and the group of users who share it; nil for
// none. It looks the group up. Its errors name the group and the fix.
func (u URL) FileGroup() (path string, g *file.Group, err error) {
	if u.Scheme.Name != "file" {
		return "", nil, fmt.Errorf("%s: is not a file: want file:PATH", Redact(u.String()))
	}
	t, err := fileurl.Read(u.Rest)
	if err != nil {
		return "", nil, err
	}
	return fileGroup(t)
}

func fileGroup(t fileurl.Target) (path string, g *file.Group, err error) {
	if t.Group == "" {
		return t.Path, nil, nil
	}
	id, err := t.GroupID()
	if err != nil {
		return "", nil, err
	}
	return t.Path, &file.Group{ID: id, Mode: t.Mode}, nil
}

func openFile(ctx context.Context, rest string, opts Options) (store.Store, error) {
	t, err := fileurl.Read(rest)
	if err != nil {
		return nil, err
	}
	path, group, err := fileGroup(t)
	if err == nil {
		err = t.Missing(opts.CreateDir, opts.MustExist)
	}
	if err != nil {
		return nil, err
	}
	st, err := file.Open(ctx, path, file.Options{CreateDir: opts.CreateDir, Group: group})
	if err != nil {
		return nil, err // a nil *file.Store would make a store that isn't nil
	}
	return st, nil
}
