"""Version 1 of the wire contract, written by the generators from `api/proto/minerva/v1/participation.proto`."""
