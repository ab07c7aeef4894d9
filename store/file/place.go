package file

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// place is what the names of a store's files led to when it was opened. A process that opens the
// store later uses what the names lead to then: if that is something else, the two exclude each
// other no more.
type place struct {
	path   string
	files  []os.FileInfo // by suffix
	folder folder[struct{}]
}

// suffixes of the files that all who use a store have to have in common. Without path.lock only the
// order of writers is lost.
var suffixes = []string{"", "-wal", "-shm"}

// placeOf looks at the files of a database that is open.
func placeOf(path string) (*place, error) {
	p := &place{path: path, folder: folder[struct{}]{path: filepath.Dir(path)}}
	for _, suffix := range suffixes {
		info, err := os.Stat(path + suffix)
		if err != nil {
			return nil, fmt.Errorf("%s: a file of the store is missing just after it was opened: %w", path, err)
		}
		p.files = append(p.files, info)
	}
	return p, nil
}

// moved returns an error if one of the names leads to another file now, or to none.
func (p *place) moved() error {
	_, err := p.folder.get(p.compare)
	return err
}

func (p *place) compare() (struct{}, error) {
	for i, suffix := range suffixes {
		info, err := os.Stat(p.path + suffix)
		if err == nil && os.SameFile(info, p.files[i]) {
			continue
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return struct{}{}, fmt.Errorf("%s%s: can't be looked at: %w", p.path, suffix, err)
		}
		return struct{}{}, fmt.Errorf("%s%s was removed or replaced while the store was open: end all programs that use it, then start them again", p.path, suffix)
	}
	return struct{}{}, nil
}

func manyLinks(path string, n uint64) error {
	return fmt.Errorf("%s: the file has %d names (hard links), and each name has a log and a lock of its own: "+
		"find the others (find DIR -xdev -samefile %s) and remove them", path, n, path)
}
