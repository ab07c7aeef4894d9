package file

func writeHelper() error { return nil }
