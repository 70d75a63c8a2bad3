module edpm.services/lab/pause

go 1.26.0
