# The service alone: no solver, nothing that learns. Models and the database are mounted.
FROM python:3.13-slim

COPY . /source
RUN pip install --no-cache-dir --constraint /source/constraints.txt '/source[serve]' \
    && rm -rf /source \
    && useradd --create-home --uid 10001 sensortree \
    && install --directory --owner sensortree --group sensortree /data

USER sensortree
WORKDIR /data
VOLUME /data
EXPOSE 8000
ENV PYTHONUNBUFFERED=1

HEALTHCHECK --interval=10s --timeout=3s CMD ["python", "-c", \
    "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/readyz', timeout=2)"]

ENTRYPOINT ["sensortree", "serve", "--host", "0.0.0.0", "--port", "8000", \
    "--database", "/data/sensortree.sqlite3"]
CMD ["/models/model.json"]
