module pernode.io/test/cluster/testpod

go 1.25.0
