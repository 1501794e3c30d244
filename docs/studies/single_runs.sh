#!/bin/sh
# The single runs of docs/results.md.
set -e

# Sokoban, Online planner
python -m baselines.vldac --env vlgym/Sokoban-v0 --env-kwargs "image_size=[196,196]" max_solution=6 max_turns=20 \
  --image-tokens 49 --history-turns 0 --history-images 1 --warm.noise 0.4 --warm.no-imitate-noise --warm.samples \
  8000 --warm.final-lr 0.05 --warm.target 0.45 --warm.check-every 50 --warm.val-episodes 64 --lr 2e-4 --kl-coef \
  0.01 --gamma 0.95 --num-envs 64 --rollout-steps 8 --minibatch 128 --env-steps 10240 --updates 20 --eval-every 5 \
  --threads 1

# Sokoban, Global planner
python -m baselines.vldac --env vlgym/Sokoban-v0 --env-kwargs planner=global "image_size=[196,196]" \
  max_solution=6 max_turns=20 --image-tokens 49 --history-turns 0 --history-images 1 --warm.noise 0 --warm.samples \
  16000 --warm.steps 1400 --warm.final-lr 0.05 --warm.target 0.45 --warm.check-every 100 --warm.val-episodes 64 \
  --lr 2e-4 --kl-coef 0.01 --gamma 0.95 --num-envs 64 --rollout-steps 4 --minibatch 128 --env-steps 3072 --updates \
  12 --eval-every 6 --threads 1 --out runs/global
python -m baselines.vldac --resume --out runs/global --env-steps 10240 --updates 40 --eval-every 12 --threads 1

# WebShop
python -m baselines.vldac --env vlgym/WebShop-v0 --env-kwargs "image_size=[84,112]" max_turns=10 \
  --invalid-penalty 0.05 --history-turns 0 --history-images 1 --warm.noise 0.4 --warm.no-imitate-noise \
  --warm.samples 3000 --warm.batch 16 --warm.steps 750 --warm.final-lr 0.05 --warm.target 0.4 --warm.check-every \
  150 --warm.val-episodes 16 --lr 2e-4 --kl-coef 0.02 --gamma 0.95 --num-envs 16 --rollout-steps 8 --minibatch 32 \
  --micro-batch 32 --env-steps 2304 --updates 18 --eval-every 9 --eval-episodes 64 --threads 1

# ALFWorld
python -m baselines.vldac --env vlgym/ALFWorld-v0 --env-kwargs "image_size=[112,112]" max_turns=30 \
  --invalid-penalty 0.1 --history-turns 0 --history-images 1 --warm.noise 0.2 --warm.no-imitate-noise \
  --warm.samples 10000 --warm.batch 16 --warm.steps 900 --warm.final-lr 0.05 --warm.target 0.4 --warm.check-every \
  300 --warm.val-episodes 12 --lr 1e-4 --kl-coef 0.02 --gamma 0.95 --reward.scale 0.1 --num-envs 16 \
  --rollout-steps 8 --minibatch 32 --micro-batch 32 --env-steps 2560 --updates 20 --eval-every 10 --eval-episodes \
  64 --threads 1
