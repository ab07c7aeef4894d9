package file

const wakeSuffix = ".wake"

// hash is FNV-1a, the same in every process. That of the library allocates.
func hash[T string | []byte](key T) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(key) {
		h = (h ^ uint64(key[i])) * 1099511628211
	}
	return h
}
