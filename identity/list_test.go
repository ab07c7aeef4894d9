package identity

import (
	"errors"
	"fmt"
	"testing"
)

// What can't be adopted as a whole isn't at all; what can is, once.
func TestImport(t *testing.T) {
	inWorld(t, func(t *testing.T, w world) {
		p := w.process(nil)
		old, had := as("1-20", "old"), "17"
		old.Value = had
		p.assign(old)
		o := AssignOptions{}
		data := map[string]string{"a": "0", "b": "21", "c": "3", "d": "3", "e": had, "old": had, "f": ""}
		var refused *ImportError
		if _, err := Import(t.Context(), p.m, "machines", data, o); !errors.As(err, &refused) || len(refused.Duplicates) == 0 || len(refused.Conflicts) != 3 {
			t.Fatalf("%v", err)
		}
		if _, all, err := List(t.Context(), p.net, "machines"); err != nil || len(all) != 1 {
			t.Errorf("it has written something: %+v, %v", all, err)
		}
		data = map[string]string{"old": had, "none": ""}
		for i := 1; i <= 20; i++ {
			if v := fmt.Sprint(i); v != had {
				data["n"+v] = v
			}
		}
		for _, want := range []int{19, 0} {
			made, err := Import(t.Context(), p.m, "machines", data, o)
			if err != nil || len(made) != want {
				t.Errorf("%d are new, want %d: %v", len(made), want, err)
			}
		}
		values, all, err := List(t.Context(), p.net, "machines")
		if err != nil || len(all) != 20 || values.Range != "1-20" {
			t.Fatalf("%v, %d of 20, %v", values, len(all), err)
		}
		for i, e := range all {
			if e.Value != fmt.Sprint(i+1) || data[e.Name] != e.Value || !e.Standing || e.Ceiling.IsZero() {
				t.Errorf("%+v", e)
			}
		}
		if again := p.assign(as("", all[6].Name)); again.Value != "7" || !again.Renewed {
			t.Errorf("%+v", again)
		}
		if twice, err := Duplicates(t.Context(), p.net, "machines"); err != nil || len(twice) > 0 {
			t.Errorf("%v, %v", twice, err)
		}
	})
}
