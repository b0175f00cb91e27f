// merge-oracle answers what upstream's own code makes of given discovery documents.
//
// Usage:
//
//	merge-oracle merge DIR: every folder of DIR is one cluster. NAME.json is what server NAME lists (an
//	APIGroupDiscoveryList, v2 JSON) and the file `local` holds the name of the server that is asked for /apis.
//
//	merge-oracle encode DIR: every folder of DIR holds one document of old as document.json.
//
//	merge-oracle yaml FILE: FILE holds a JSON array; its items are written as YAML into FILE.yaml, with a NUL behind
//	each. Nothing is written for an item that upstream writes in different ways: go-yaml's comparison is no order for
//	some sets of keys ("0aa3" < "2_b-" < "02b" < "0aa3"), so theirs comes from the chance order of a Go map.
//
// Into each folder are written FORM.body and FORM.head, the body and the headers of upstream's answer, for the forms
// json, pretty, yaml, protobuf and gzip (JSON, asked for with `Accept-Encoding: gzip`; only the head).
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"
)

func main() {
	if len(os.Args) != 3 {
		fail(fmt.Errorf("usage: merge-oracle merge|encode|yaml PATH"))
	}
	switch path := os.Args[2]; os.Args[1] {
	case "merge":
		each(path, func(folder string) {
			answer(folder, merged(folder), "/apis", ";g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		})
	case "encode":
		each(path, func(folder string) { answer(folder, legacy(folder), "/", "") })
	case "yaml":
		writeYAML(path)
	default:
		fail(fmt.Errorf("unknown command %q", os.Args[1]))
	}
}

func each(path string, work func(folder string)) {
	folders, err := os.ReadDir(path)
	fail(err)
	for _, folder := range folders {
		work(filepath.Join(path, folder.Name()))
	}
}

// answer asks for every form; parameters are those of the media type.
func answer(folder string, handler http.Handler, path, parameters string) {
	forms := []struct{ name, path, mediaType, encodings string }{
		{"json", path, "application/json", ""},
		{"pretty", path + "?pretty=1", "application/json", ""},
		{"yaml", path, "application/yaml", ""},
		{"protobuf", path, "application/vnd.kubernetes.protobuf", ""},
		{"gzip", path, "application/json", "gzip"},
	}
	for _, form := range forms {
		request := httptest.NewRequest(http.MethodGet, form.path, nil)
		request.Header.Set("Accept", form.mediaType+parameters)
		request.Header.Set("Accept-Encoding", form.encodings)
		recorder := httptest.NewRecorder()
		handler.ServeHTTP(recorder, request)
		var head bytes.Buffer
		fail(recorder.Header().Write(&head))
		write(folder, form.name+".head", head.Bytes())
		if form.name != "gzip" {
			write(folder, form.name+".body", recorder.Body.Bytes())
		}
	}
}

func writeYAML(path string) {
	text, err := os.ReadFile(path)
	fail(err)
	var items []json.RawMessage
	fail(json.Unmarshal(text, &items))
	var all bytes.Buffer
	for _, item := range items {
		all.Write(onlyYAML(item))
		all.WriteByte(0)
	}
	fail(os.WriteFile(path+".yaml", all.Bytes(), 0o600))
}

// onlyYAML is what an item is written as each time, or nothing.
func onlyYAML(item []byte) []byte {
	var only []byte
	for range 64 {
		document, err := yaml.JSONToYAML(item)
		fail(err)
		if only != nil && !bytes.Equal(only, document) {
			return nil
		}
		only = document
	}
	return only
}

func write(folder, name string, content []byte) {
	fail(os.WriteFile(filepath.Join(folder, name), content, 0o600))
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
