//go:build !go1.24

package main

import (
	"crypto/tls"
	"net/http"
)

const speaksClearHTTP2 = false

// The server's certificate is made by the test.
func transport(isHTTP2 bool) *http.Transport {
	t := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: isHTTP2}
	if !isHTTP2 {
		t.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	return t
}
