# opschema without PyTorch: docker run --rm -v "$PWD":/work ghcr.io/opschema/opschema lint
FROM python:3.12-slim AS build
COPY . /source
RUN pip install --no-cache-dir --prefix /install /source

FROM python:3.12-slim
RUN apt-get update && apt-get install --no-install-recommends --yes git && rm -rf /var/lib/apt/lists/*
COPY --from=build /install /usr/local
# A mounted repository belongs to another user; git would refuse to list its files.
RUN git config --system --add safe.directory '*' && useradd --create-home opschema
USER opschema
WORKDIR /work
ENTRYPOINT ["opschema"]
CMD ["lint"]
