module penstock/tests/interop

go 1.19
