// The API of this service, by its own description. Nothing is loaded from another server.

const response = await fetch("/api/openapi.json");
const api = await response.json();
for (const operation of Object.values(api.paths).flatMap(Object.values)) emptyOptionalFields(operation);
SwaggerUIBundle({
  spec: api,
  dom_id: "#api",
  deepLinking: true,
  displayRequestDuration: true,
  tryItOutEnabled: true,
  validatorUrl: null,
  requestInterceptor: dropEmptyFields,
});

// Swagger UI would send the example of every field that is left alone, and an empty list as one empty text.
function emptyOptionalFields({ parameters = [], requestBody }) {
  for (const parameter of parameters) if (!parameter.required) delete parameter.example;
  const form = requestBody?.content["multipart/form-data"];
  if (!form) return;
  delete form.example;
  const schema = api.components.schemas[form.schema.$ref.split("/").pop()];
  for (const [name, field] of Object.entries(schema.properties)) {
    if (schema.required?.includes(name)) continue;
    delete field.examples;
    if (field.type === "string" && !field.contentMediaType) field.example = "";
  }
}

function dropEmptyFields(request) {
  if (request.body instanceof FormData)
    for (const [name, value] of [...request.body]) if (value === "") request.body.delete(name);
  return request;
}
