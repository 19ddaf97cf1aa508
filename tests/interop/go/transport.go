//go:build go1.24

package main

import (
	"crypto/tls"
	"net/http"
)

const speaksClearHTTP2 = true

// The server's certificate is made by the test.
func transport(isHTTP2 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!isHTTP2)
	protocols.SetHTTP2(isHTTP2)
	protocols.SetUnencryptedHTTP2(isHTTP2)
	return &http.Transport{Protocols: protocols, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}
