"""A program that uses only torch and the name of the backend: run by torchrun, on the CPU."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

dist.init_process_group("commsir")
rank, size = dist.get_rank(), dist.get_world_size()

x = torch.full((1000,), float(rank))
dist.all_reduce(x)
assert (x == size * (size - 1) / 2).all(), x

parts = torch.empty(size, 3)
dist.all_gather_into_tensor(parts, torch.full((3,), float(rank)))
assert (parts == torch.arange(size).unsqueeze(1)).all(), parts

names: list[str] = [""] * size
dist.all_gather_object(names, f"rank {rank}")
assert names == [f"rank {i}" for i in range(size)], names

torch.manual_seed(0)
model = DistributedDataParallel(torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = []
for _ in range(20):
    features = torch.randn(size, 16, 8)[rank]
    loss = (model(features) - features.sum(1, keepdim=True)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0] / 10, losses
weights = [torch.empty(1, 8) for _ in range(size)]
dist.all_gather(weights, model.module.weight.detach())
assert all(torch.equal(one, weights[0]) for one in weights), weights

if rank == 0:
    used = sys.modules["commsir.torch.backend"].loaded_module()
    print("torch", torch.__version__, "with", used.__spec__.origin if used else "no backend")
dist.destroy_process_group()
