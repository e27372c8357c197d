#!/bin/bash
PEERS=(192.168.100.11:50052)
ssh spark2 "rpc-server -H 0.0.0.0 -p 50052" &
until curl -s http://192.168.100.11:50052 || true; do sleep 1; break; done
llama-server -m /models/gpt-oss-120b-mxfp4-00001-of-00003.gguf --rpc "$(IFS=,; echo "${PEERS[*]}")" -ngl 999 -c 4096 --port 8080
