package file

import (
	"context"
	"fmt"
	"io/fs"
)

// Group is the group of users who share a file, on Unix. [Create] makes the file, and every member
// then opens it, with the same Group.
type Group struct {
	ID int // the number of the group

	// Mode is the mode of the database and of all files beside it: 0660, which is the default, or
	// 0664. With 0664 other users can read the files as files. To open the store they have to be
	// members.
	Mode fs.FileMode
}

// mode returns Mode, or its default.
func (g Group) mode() fs.FileMode {
	if g.Mode == 0 {
		return 0o660
	}
	return g.Mode
}

// folderMode is the mode of the folder: what is made in it later has its group.
func (g Group) folderMode() fs.FileMode {
	return g.mode() | (g.mode()&0o444)>>2 | fs.ModeSetgid
}

func (g Group) check() error {
	if m := g.mode(); m != 0o660 && m != 0o664 {
		return fmt.Errorf("mode %#o: want 0660, or 0664 with which other users can read the files: "+
			"who can write to some of the files and not to the others can stop the store", m)
	}
	if g.ID < 0 {
		return fmt.Errorf("group %d: want the number of a group", g.ID)
	}
	return nil
}

// Create makes a store that the members of a group share, whatever their umasks: the folder, of
// mode 2770 (2775 with 0664), and in it the database and the files beside it. A store that is there
// already gets the group and the mode; the processes that have it open go on using it. Create needs
// the right to change the group: that of root, or of a member who owns the folder.
//
// Create refuses a folder with files of others, and one that somebody else could move away; see
// [Options].Group. It blocks as [Open] does.
func Create(ctx context.Context, path string, g Group) error {
	if err := g.check(); err != nil {
		return err
	}
	path, err := prepare(path, g)
	if err != nil {
		return err
	}
	s, err := Open(ctx, path, Options{Group: &g})
	if err != nil {
		return err
	}
	return s.Close()
}

// describe returns a mode as `ls -l` shows it.
func describe(mode fs.FileMode) string {
	text := []byte("-" + mode.Perm().String()[1:])
	if mode.IsDir() {
		text[0] = 'd'
	}
	for _, bit := range []struct {
		is        fs.FileMode
		at        int
		with, not byte // the right to execute
	}{{fs.ModeSetuid, 3, 's', 'S'}, {fs.ModeSetgid, 6, 's', 'S'}, {fs.ModeSticky, 9, 't', 'T'}} {
		if mode&bit.is == 0 {
			continue
		}
		if text[bit.at] == 'x' {
			text[bit.at] = bit.with
		} else {
			text[bit.at] = bit.not
		}
	}
	return string(text)
}
