package file
