// Package web is how people and programs speak with a gate: screens in German
// and English for the people who decide, and a REST API under /api/v1 for the
// same. On the gate's own machine the API is spoken over a socket, by users
// that the kernel names.
//
// It never decides and never judges: it shows what the gate says and hands on
// what people say. It knows no destination, opens no file that a browser
// names, and shows text that came with an artifact only where nothing in it
// can have an effect.
package web
