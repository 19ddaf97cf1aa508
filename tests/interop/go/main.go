// Go's own client: interop-go URL BODY-FILE HEADER-LENGTH TIMES
//
// Sends the body so many times, 32 at once, over HTTP/1.1 and over HTTP/2 (in clear text from Go 1.24 on). Every answer must be 200 and as the first one, which is printed.
package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
)

const together = 32

func ask(c *http.Client, major int, url, headLength string, body []byte) ([]byte, error) {
	request, err := http.NewRequest("POST", url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Inference-Header-Content-Length", headLength)
	request.Header.Set("Content-Type", "application/octet-stream")
	response, err := c.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && (response.StatusCode != 200 || response.ProtoMajor != major) {
		err = fmt.Errorf("%s %s: %s", response.Proto, response.Status, answer)
	}
	return answer, err
}

func run(url, headLength string, body []byte, times int) ([]byte, error) {
	var first []byte
	for major := 1; major <= 2; major++ {
		if major == 2 && !speaksClearHTTP2 && strings.HasPrefix(url, "http:") {
			break
		}
		c := &http.Client{Transport: transport(major == 2)}
		answer, err := ask(c, major, url, headLength, body)
		if err != nil {
			return nil, err
		}
		if first == nil {
			first = answer
		}
		results, places := make(chan error, times), make(chan bool, together)
		for i := 0; i < times; i++ {
			places <- true
			go func() {
				answer, err := ask(c, major, url, headLength, body)
				if err == nil && !bytes.Equal(answer, first) {
					err = fmt.Errorf("an answer differs from the first")
				}
				<-places
				results <- err
			}()
		}
		for i := 0; i < times; i++ {
			if err := <-results; err != nil {
				return nil, err
			}
		}
	}
	return first, nil
}

func main() {
	body, err := os.ReadFile(os.Args[2])
	times, _ := strconv.Atoi(os.Args[4])
	var first []byte
	if err == nil {
		first, err = run(os.Args[1], os.Args[3], body, times)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Stdout.Write(first)
}
