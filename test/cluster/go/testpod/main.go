// SPDX-License-Identifier: Apache-2.0

// Command testpod is what the cluster's own tests run in pods, in two verbs.
//
//	testpod webhook    serves a mutating admission webhook on :8443 that adds the label
//	                   "stamped" to every object, with the certificate in /tls
//	testpod whoami     asks the API server, with the pod's service-account token, who it is,
//	                   prints the answer, and stays
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"time"
)

const (
	accountDir   = "/var/run/secrets/kubernetes.io/serviceaccount/"
	maxBodyBytes = 4 << 20
	askTimeout   = 20 * time.Second
)

type review struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	Request    *reviewRequest  `json:"request,omitempty"`
	Response   *reviewResponse `json:"response,omitempty"`
}

type reviewRequest struct {
	UID    string `json:"uid"`
	Object struct {
		Metadata struct {
			Labels map[string]string `json:"labels"`
		} `json:"metadata"`
	} `json:"object"`
}

type reviewResponse struct {
	UID       string `json:"uid"`
	Allowed   bool   `json:"allowed"`
	Patch     []byte `json:"patch,omitempty"`
	PatchType string `json:"patchType,omitempty"`
}

func admit(w http.ResponseWriter, r *http.Request) {
	var in review
	if err := json.NewDecoder(io.LimitReader(r.Body, maxBodyBytes)).Decode(&in); err != nil || in.Request == nil {
		http.Error(w, "not an AdmissionReview", http.StatusBadRequest)
		return
	}
	patch := `[{"op":"add","path":"/metadata/labels/stamped","value":"yes"}]`
	if in.Request.Object.Metadata.Labels == nil {
		patch = `[{"op":"add","path":"/metadata/labels","value":{"stamped":"yes"}}]`
	}
	out := review{APIVersion: in.APIVersion, Kind: in.Kind, Response: &reviewResponse{
		UID: in.Request.UID, Allowed: true, Patch: []byte(patch), PatchType: "JSONPatch"}}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(out); err != nil {
		log.Print(err)
	}
}

func webhook() error {
	server := &http.Server{Addr: ":8443", Handler: http.HandlerFunc(admit), ReadHeaderTimeout: askTimeout}
	return server.ListenAndServeTLS("/tls/tls.crt", "/tls/tls.key")
}

func whoami() error {
	ca, err := os.ReadFile(accountDir + "ca.crt")
	if err != nil {
		return err
	}
	token, err := os.ReadFile(accountDir + "token")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return fmt.Errorf("%sca.crt holds no certificate", accountDir)
	}
	client := &http.Client{Timeout: askTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	url := fmt.Sprintf("https://%s:%s/apis/authentication.k8s.io/v1/selfsubjectreviews",
		os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	body := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}`)
	request, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	request.Header.Set("Content-Type", "application/json")
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxBodyBytes))
	if err != nil {
		return err
	}
	fmt.Printf("%s %s\n", answer.Status, text)
	select {}
}

func main() {
	verbs := map[string]func() error{"webhook": webhook, "whoami": whoami}
	if len(os.Args) != 2 || verbs[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: testpod webhook|whoami")
		os.Exit(2)
	}
	log.Fatal(verbs[os.Args[1]]())
}
